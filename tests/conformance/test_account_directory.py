"""Accounts as an operator finds them: in pages, by name and by external id."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.access import Account
from cuepost.ports.records import AccountSearch, Page, SearchedBy
from cuepost.ports.store import KeyTaken
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def added(store: AnyStore, *accounts: Account) -> None:
    async with store.transaction() as transaction:
        for account in accounts:
            await transaction.accounts.add(account)


async def found(
    store: AnyStore,
    by: SearchedBy,
    prefix: str,
    limit: int = 10,
    after: tuple[str, UUID] | None = None,
) -> list[Account]:
    async with store.snapshot() as transaction:
        return await transaction.accounts.search(AccountSearch(by, prefix, limit, after))


async def test_an_account_is_found_by_its_external_id(store: AnyStore, records: Records) -> None:
    one, other = records.account(external_id="cust_1"), records.account()
    await added(store, one, other)
    async with store.snapshot() as transaction:
        assert await transaction.accounts.by_external_id("cust_1") == one
        assert await transaction.accounts.by_external_id("CUST_1") is None
        assert await transaction.accounts.by_external_id("cust") is None


async def test_two_accounts_never_have_the_same_external_id(
    store: AnyStore, records: Records
) -> None:
    one, other = records.account(external_id="cust_1"), records.account(external_id="cust_2")
    await added(store, one, other, records.account(), records.account())

    with pytest.raises(KeyTaken):
        await added(store, records.account(external_id="cust_1"))

    async def take_over() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.save(replace(other, external_id="cust_1"))

    with pytest.raises(KeyTaken):
        await take_over()
    async with store.snapshot() as transaction:
        assert await transaction.accounts.get(other.id) == other


async def test_saving_changes_name_and_external_id_alone(store: AnyStore, records: Records) -> None:
    account = records.account(name="Old", external_id="old")
    await added(store, account)
    changed = replace(account, name="New", external_id=None, webhooks_enabled=False)
    async with store.transaction() as transaction:
        await transaction.accounts.save(changed)
    kept = replace(changed, webhooks_enabled=True)
    async with store.snapshot() as transaction:
        assert await transaction.accounts.get(account.id) == kept
    assert await found(store, SearchedBy.NAME, "new") == [kept]
    assert await found(store, SearchedBy.NAME, "old") == []


async def test_pages_are_newest_first(store: AnyStore, records: Records) -> None:
    accounts = [records.account() for _ in range(5)]
    await added(store, *accounts)
    async with store.snapshot() as transaction:
        first = await transaction.accounts.page(Page(2))
        second = await transaction.accounts.page(Page(2, first[-1].id))
        last = await transaction.accounts.page(Page(2, second[-1].id))
    assert first + second + last == accounts[::-1]


async def test_a_search_by_name_is_in_the_order_of_names(store: AnyStore, records: Records) -> None:
    names = ["Harbour Films", "HARBOUR", "harbour films", "Hafen", "Straße", "Ωmega", "harz"]
    accounts = {name: records.account(name=name) for name in names}
    await added(store, *accounts.values())
    by_name = SearchedBy.NAME
    assert await found(store, by_name, "harbour") == [
        accounts["HARBOUR"],
        accounts["Harbour Films"],
        accounts["harbour films"],
    ]
    assert await found(store, by_name, "strasse") == [accounts["Straße"]]
    assert await found(store, by_name, "ω") == [accounts["Ωmega"]]
    assert await found(store, by_name, "harbour films and more") == []
    assert await found(store, by_name, "%") == []


async def test_a_search_goes_on_behind_the_last_account_of_a_page(
    store: AnyStore, records: Records
) -> None:
    accounts = [records.account(name="Same") for _ in range(3)]
    later = records.account(name="Same again")
    await added(store, later, records.account(name="Sand"), *accounts)
    page = await found(store, SearchedBy.NAME, "same", 2)
    rest = await found(store, SearchedBy.NAME, "same", 2, ("same", page[-1].id))
    assert page + rest == [*accounts, later]
    # Nothing before the prefix is found, whatever the page is said to begin with.
    assert await found(store, SearchedBy.NAME, "same", 9, ("a", UUID(int=0))) == [*accounts, later]


async def test_a_search_by_external_id_keeps_capitals_apart(
    store: AnyStore, records: Records
) -> None:
    ids = ["cust_10", "cust_1", "Cust_1", "cust_2", "dust"]
    accounts = {each: records.account(external_id=each) for each in ids}
    await added(store, records.account(), *accounts.values())
    by_id = SearchedBy.EXTERNAL_ID
    assert await found(store, by_id, "cust_") == [
        accounts["cust_1"],
        accounts["cust_10"],
        accounts["cust_2"],
    ]
    after = ("cust_1", accounts["cust_1"].id)
    assert await found(store, by_id, "cust_1", 5, after) == [accounts["cust_10"]]


async def test_an_account_of_an_older_version_is_named_for_search(
    store: AnyStore, records: Records
) -> None:
    accounts = [records.account(name="Studio") for _ in range(3)]
    await added(store, *accounts)
    async with store.transaction() as transaction:
        assert not await transaction.accounts.lacks_search_names()
        assert isinstance(transaction, RecordsTransaction)
        await transaction.session.execute(Sql("UPDATE accounts SET search_name = NULL"))
    assert await found(store, SearchedBy.NAME, "studio") == []

    async with store.transaction() as transaction:
        assert await transaction.accounts.lacks_search_names()
        assert await transaction.accounts.name_for_search(2)
    assert await found(store, SearchedBy.NAME, "studio") == accounts[:2]
    async with store.transaction() as transaction:
        assert await transaction.accounts.name_for_search(2)
        assert not await transaction.accounts.name_for_search(2)
    assert await found(store, SearchedBy.NAME, "studio") == accounts


async def test_accounts_that_are_being_erased_are_listed_in_their_order(
    store: AnyStore, records: Records
) -> None:
    accounts = [records.account() for _ in range(3)]
    await added(store, *accounts)
    now = records.clock.now()
    async with store.transaction() as transaction:
        await transaction.accounts.start_erasing(accounts[2].id, now)
        await transaction.accounts.start_erasing(accounts[0].id, now + timedelta(seconds=1))
    async with store.snapshot() as transaction:
        assert await transaction.accounts.erasing(5) == [accounts[2].id, accounts[0].id]
        assert await transaction.accounts.erasing(1) == [accounts[2].id]
        assert await transaction.accounts.get(accounts[2].id) == replace(
            accounts[2], erasing_since=now
        )


async def test_keys_of_an_account_come_in_pages_and_are_revoked_together(
    store: AnyStore, records: Records
) -> None:
    account_id, now = records.id(), records.clock.now()
    mine = [records.key(account_id) for _ in range(3)]
    others = [records.key(records.id()), records.key(None)]
    async with store.transaction() as transaction:
        for key in (*mine, *others):
            await transaction.keys.add(key)
        await transaction.keys.revoke(mine[0].id, now - timedelta(hours=1))
        await transaction.keys.revoke_all(account_id, now)
    async with store.snapshot() as transaction:
        first = await transaction.keys.page(account_id, Page(2))
        second = await transaction.keys.page(account_id, Page(2, first[-1].id))
        assert first + second == [
            replace(mine[2], revoked_at=now),
            replace(mine[1], revoked_at=now),
            replace(mine[0], revoked_at=now - timedelta(hours=1)),
        ]
        assert [await transaction.keys.get(each.id) for each in others] == others
