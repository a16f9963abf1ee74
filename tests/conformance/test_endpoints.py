"""Endpoints, their secrets, and who gets an event."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.delivery import CancelReason
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import Subscriber
from cuepost.ports.records import Page
from cuepost.ports.store import Contention
from tests.support.records import Records
from tests.support.store_rows import AnyStore


async def add(store: AnyStore, records: Records, *endpoints: Endpoint) -> None:
    async with store.transaction() as transaction:
        for endpoint in endpoints:
            await transaction.endpoints.add(endpoint, records.secret())


def bare(endpoint: Endpoint) -> Endpoint:
    return replace(
        endpoint, description="", enabled=False, last_delivered_at=None, failing_since=None
    )


async def test_an_endpoint_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    full = records.endpoint(account_id)
    empty = bare(records.endpoint(account_id, events=("project.ready",)))
    await add(store, records, full, empty)

    async with store.transaction() as transaction:
        for endpoint in (full, empty):
            assert await transaction.endpoints.get(account_id, endpoint.id) == endpoint
            assert await transaction.endpoints.lock(account_id, endpoint.id) == endpoint
        assert await transaction.endpoints.get(account_id, records.id()) is None
        assert await transaction.endpoints.lock(account_id, records.id()) is None


async def test_endpoints_are_counted_and_paged_newest_first(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    endpoints = [records.endpoint(account_id) for _ in range(4)]
    await add(store, records, *endpoints, records.endpoint(records.id()))

    async with store.snapshot() as transaction:
        assert await transaction.endpoints.count(account_id) == 4
        assert await transaction.endpoints.count(records.id()) == 0
        first = await transaction.endpoints.page(account_id, Page(3))
        second = await transaction.endpoints.page(account_id, Page(3, first[-1].id))

    assert [first, second] == [endpoints[:0:-1], endpoints[:1]]


async def test_a_change_of_an_endpoint_is_saved(store: AnyStore, records: Records) -> None:
    before, other = records.endpoint(records.id()), records.endpoint(records.id())
    await add(store, records, before, other)
    after = replace(
        before,
        url="https://other.example.com/",
        events=("project.cancelled", "project.ready"),
        description="neu ☎",
        enabled=False,
        updated_at=before.updated_at + timedelta(milliseconds=1),
        last_delivered_at=None,
        failing_since=None,
    )

    async with store.transaction() as transaction:
        await transaction.endpoints.save(after)

    async with store.snapshot() as transaction:
        assert await transaction.endpoints.get(before.account_id, before.id) == after
        assert await transaction.endpoints.get(other.account_id, other.id) == other


async def test_subscribers_are_all_endpoints_of_an_account_and_say_why_they_are_stopped(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    on, off = records.endpoint(account.id), bare(records.endpoint(account.id))
    deleted, foreign = records.endpoint(account.id), records.endpoint(records.id())
    await add(store, records, on, off, deleted, foreign)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.endpoints.delete(account.id, deleted.id, records.clock.now())

    async with store.transaction() as transaction:
        assert await transaction.endpoints.subscribers([account.id, records.id()]) == {
            account.id: [
                Subscriber(on.id, frozenset(on.events)),
                Subscriber(off.id, frozenset(off.events), CancelReason.ENDPOINT_DISABLED),
            ]
        }


async def test_every_subscriber_of_an_account_without_access_is_stopped_by_that(
    store: AnyStore, records: Records
) -> None:
    account = records.account(webhooks_enabled=False)
    on, off = records.endpoint(account.id), bare(records.endpoint(account.id))
    await add(store, records, on, off)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        assert await transaction.endpoints.subscribers([account.id, records.id()]) == {
            account.id: [
                Subscriber(each.id, frozenset(each.events), CancelReason.ACCESS_CLOSED)
                for each in (on, off)
            ]
        }
        assert await transaction.endpoints.subscribers([]) == {}


async def test_each_account_has_subscribers_of_its_own(store: AnyStore, records: Records) -> None:
    accounts = [records.account() for _ in range(3)]
    endpoints = [records.endpoint(account.id) for account in accounts]
    await add(store, records, *endpoints)
    async with store.transaction() as transaction:
        for account in accounts:
            await transaction.accounts.add(account)
        asked = [account.id for account in accounts[:2]]
        assert await transaction.endpoints.subscribers(asked) == {
            each.account_id: [Subscriber(each.id, frozenset(each.events))] for each in endpoints[:2]
        }


async def test_secrets_come_back_sealed_with_their_hints(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    one, other = records.endpoint(account_id), records.endpoint(account_id)
    first, second = records.secret(1), records.secret(2, sealed=b"", hint="whsec_…ä")
    async with store.transaction() as transaction:
        await transaction.endpoints.add(one, first)
        await transaction.endpoints.add(other, first)
        await transaction.endpoints.put_secret(account_id, one.id, second)

    async with store.snapshot() as transaction:
        found = await transaction.endpoints.secrets(account_id, [one.id, other.id, records.id()])
        nothing = await transaction.endpoints.secrets(account_id, [])

    assert {
        key: sorted(each, key=lambda secret: secret.version) for key, each in found.items()
    } == {
        one.id: [first, second],
        other.id: [first],
    }
    assert nothing == {}


async def test_a_secret_that_is_put_again_only_changes_its_end(
    store: AnyStore, records: Records
) -> None:
    endpoint, secret = records.endpoint(records.id()), records.secret()
    until = records.clock.now() + timedelta(hours=24, milliseconds=1)
    async with store.transaction() as transaction:
        await transaction.endpoints.add(endpoint, secret)
        again = replace(secret.expiring(until), sealed=b"another", hint="another")
        await transaction.endpoints.put_secret(endpoint.account_id, endpoint.id, again)

    async with store.snapshot() as transaction:
        found = await transaction.endpoints.secrets(endpoint.account_id, [endpoint.id])
    assert found == {endpoint.id: [secret.expiring(until)]}


async def test_a_secret_is_dropped_alone(store: AnyStore, records: Records) -> None:
    endpoint = records.endpoint(records.id())
    old, new = records.secret(1), records.secret(2)
    async with store.transaction() as transaction:
        await transaction.endpoints.add(endpoint, old)
        await transaction.endpoints.put_secret(endpoint.account_id, endpoint.id, new)
        await transaction.endpoints.drop_secret(endpoint.account_id, endpoint.id, 1)

    async with store.snapshot() as transaction:
        found = await transaction.endpoints.secrets(endpoint.account_id, [endpoint.id])
    assert found == {endpoint.id: [new]}


async def test_an_endpoint_cannot_be_added_twice(store: AnyStore, records: Records) -> None:
    endpoint = records.endpoint(records.id())
    await add(store, records, endpoint)
    with pytest.raises(Contention):
        await add(store, records, replace(endpoint, url="https://other.example.com"))
