"""Accounts and API keys."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.access import SERVICE_SCOPES
from cuepost.ports.records import Page
from cuepost.ports.store import Contention
from tests.support.records import Records
from tests.support.store_rows import AnyStore


@pytest.mark.parametrize("webhooks_enabled", [True, False])
async def test_an_account_comes_back_as_it_was_added(
    store: AnyStore, records: Records, webhooks_enabled: bool
) -> None:
    account = records.account(webhooks_enabled=webhooks_enabled)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)

    async with store.transaction() as transaction:
        assert await transaction.accounts.get(account.id) == account
        assert await transaction.accounts.hold(account.id) == account
        assert await transaction.accounts.lock(account.id) == account


async def test_an_unknown_account_is_not_found(store: AnyStore, records: Records) -> None:
    async with store.transaction() as transaction:
        assert await transaction.accounts.get(records.id()) is None
        assert await transaction.accounts.hold(records.id()) is None
        assert await transaction.accounts.lock(records.id()) is None


async def test_accounts_are_listed_in_the_order_of_their_ids(
    store: AnyStore, records: Records
) -> None:
    accounts = [records.account(name=name) for name in ("c", "a", "b")]
    async with store.transaction() as transaction:
        for account in reversed(accounts):
            await transaction.accounts.add(account)

    async with store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == accounts


async def test_access_is_opened_and_closed_for_one_account_alone(
    store: AnyStore, records: Records
) -> None:
    one, other = records.account(), records.account(webhooks_enabled=False)
    async with store.transaction() as transaction:
        await transaction.accounts.add(one)
        await transaction.accounts.add(other)
        await transaction.accounts.set_access(one.id, False)
        await transaction.accounts.set_access(other.id, True)

    async with store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == [
            replace(one, webhooks_enabled=False),
            replace(other, webhooks_enabled=True),
        ]


async def test_an_id_that_is_taken_is_contention_and_keeps_nothing(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)

    async def close_and_add() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.set_access(account.id, False)
            await transaction.accounts.add(replace(account, name="another"))

    with pytest.raises(Contention):
        await close_and_add()

    async with store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == [account]


async def test_a_key_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    plain = records.key(records.id(), expires_at=None)
    service = records.key(None, scopes=SERVICE_SCOPES)
    used = records.key(
        records.id(),
        revoked_at=records.clock.now() + timedelta(milliseconds=1),
        last_used_at=records.clock.now() + timedelta(milliseconds=2),
    )
    async with store.transaction() as transaction:
        for key in (plain, service, used):
            await transaction.keys.add(key)

    async with store.snapshot() as transaction:
        assert [await transaction.keys.get(key.id) for key in (plain, service, used)] == [
            plain,
            service,
            used,
        ]
        assert await transaction.keys.get(records.id()) is None


async def test_keys_are_listed_for_their_account_and_service_keys_apart(
    store: AnyStore, records: Records
) -> None:
    account_id, other_id = records.id(), records.id()
    mine = [records.key(account_id), records.key(account_id)]
    theirs, service = records.key(other_id), records.key(None)
    async with store.transaction() as transaction:
        for key in (service, theirs, *reversed(mine)):
            await transaction.keys.add(key)

    async with store.snapshot() as transaction:
        assert await transaction.keys.all(account_id) == mine
        assert await transaction.keys.all(other_id) == [theirs]
        assert await transaction.keys.all(None) == [service]
        assert await transaction.keys.all(records.id()) == []
        every = sorted([*mine, theirs, service], key=lambda key: key.id)
        assert await transaction.keys.page_of_all(Page(10)) == every[::-1]
        assert await transaction.keys.page_of_all(Page(2, every[3].id)) == every[1:3][::-1]


async def test_a_key_keeps_the_moment_of_its_first_revocation(
    store: AnyStore, records: Records
) -> None:
    key, other = records.key(records.id()), records.key(None)
    now = records.clock.now()
    async with store.transaction() as transaction:
        await transaction.keys.add(key)
        await transaction.keys.add(other)
        await transaction.keys.revoke(key.id, now)
        await transaction.keys.revoke(key.id, now + timedelta(hours=1))

    async with store.snapshot() as transaction:
        assert await transaction.keys.get(key.id) == replace(key, revoked_at=now)
        assert await transaction.keys.get(other.id) == other


async def test_a_key_remembers_when_it_was_used_last(store: AnyStore, records: Records) -> None:
    key = records.key(records.id())
    later = records.clock.now() + timedelta(minutes=1, milliseconds=9)
    async with store.transaction() as transaction:
        await transaction.keys.add(key)
        await transaction.keys.touch(key.id, records.clock.now())
        await transaction.keys.touch(key.id, later)

    async with store.snapshot() as transaction:
        assert await transaction.keys.get(key.id) == replace(key, last_used_at=later)
