"""A deleted endpoint is gone for everybody at once; its history is cleared away in steps."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.records.endpoints import HISTORY_CLEARED_AT_ONCE
from cuepost.adapters.storage.tables import endpoints
from cuepost.domain.delivery import FINAL, CancelReason, Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore, introduce, lease, row_counts, rows, run

STATUSES = (DeliveryStatus.PENDING, *FINAL)


async def history(
    store: AnyStore,
    records: Records,
    endpoint: Endpoint,
    many: int,
    statuses: Sequence[DeliveryStatus] = STATUSES,
) -> None:
    """Deliveries of these statuses in turn, each with two attempts."""
    made = [delivery(records, endpoint, statuses[number % len(statuses)]) for number in range(many)]
    async with store.transaction() as transaction:
        await transaction.deliveries.add(made)
        await transaction.attempts.add(
            [records.attempt(each, number=number) for each in made for number in (1, 2)]
        )


def delivery(records: Records, endpoint: Endpoint, status: DeliveryStatus) -> Delivery:
    cancelled = status is DeliveryStatus.CANCELLED
    return records.delivery(
        endpoint.account_id,
        webhook_id=endpoint.id,
        status=status,
        reason=CancelReason.ENDPOINT_DISABLED if cancelled else None,
    )


async def delete(store: AnyStore, records: Records, endpoint: Endpoint) -> None:
    async with store.transaction() as transaction:
        await transaction.endpoints.delete(endpoint.account_id, endpoint.id, records.clock.now())


async def purge(store: AnyStore, rows_at_once: int) -> bool:
    async with store.transaction() as transaction:
        return await transaction.endpoints.purge_deleted(rows_at_once)


@pytest.fixture
async def endpoint(store: AnyStore, records: Records) -> Endpoint:
    made = records.endpoint(records.id())
    async with store.transaction() as transaction:
        await introduce(transaction, made.account_id)
        await transaction.endpoints.add(made, records.secret())
        await transaction.bulk_retries.add(records.bulk_retry(made.account_id, made.id))
    return made


async def test_a_small_endpoint_leaves_nothing_behind(
    store: AnyStore, records: Records, endpoint: Endpoint
) -> None:
    await history(store, records, endpoint, 8)
    await delete(store, records, endpoint)
    assert await row_counts(store) == {"accounts": 1}
    assert not await purge(store, 10)


async def test_a_neighbour_keeps_everything(
    store: AnyStore, records: Records, endpoint: Endpoint
) -> None:
    neighbour = replace(endpoint, id=records.id())
    async with store.transaction() as transaction:
        await transaction.endpoints.add(neighbour, records.secret())
        await transaction.bulk_retries.add(records.bulk_retry(neighbour.account_id, neighbour.id))
    await history(store, records, neighbour, 8)
    before = await row_counts(store)
    await history(store, records, endpoint, 8)

    await delete(store, records, endpoint)

    assert await row_counts(store) == before | {
        "endpoints": 1,
        "signing_secrets": 1,
        "bulk_retries": 1,
    }


async def test_a_large_endpoint_is_invisible_at_once(
    store: AnyStore, records: Records, endpoint: Endpoint
) -> None:
    account_id: UUID = endpoint.account_id
    # Live ones are gone with the endpoint; of the others eight are left.
    many = (HISTORY_CLEARED_AT_ONCE + 8) * len(STATUSES) // len(FINAL)
    await history(store, records, endpoint, many)
    await lease(store, records.id())
    await delete(store, records, endpoint)

    left = {"accounts": 1, "endpoints": 1, "deliveries": 8, "attempts": 16}
    left |= {"delivery_counts": 2}
    assert await row_counts(store) == left
    [row] = await rows(store, sa.select(endpoints.c.url, endpoints.c.enabled))
    assert tuple(row) == ("", False)
    async with store.transaction() as transaction:
        assert await transaction.endpoints.get(account_id, endpoint.id) is None
        assert await transaction.endpoints.lock(account_id, endpoint.id) is None
        assert await transaction.endpoints.count(account_id) == 0
        assert await transaction.endpoints.page(account_id, Page(10)) == []
        for status in (None, *DeliveryStatus):
            chosen = DeliveryFilter(status=status)
            assert await transaction.deliveries.page(account_id, chosen, Page(10)) == []


async def test_what_is_left_of_a_deleted_endpoint_is_found_by_no_id(
    store: AnyStore, records: Records, endpoint: Endpoint
) -> None:
    account_id = endpoint.account_id
    left = [delivery(records, endpoint, status) for status in FINAL]
    async with store.transaction() as transaction:
        await transaction.deliveries.add(left)
    marked = sa.update(endpoints).values(deleted_at=records.clock.now(), enabled=False)
    await run(store, marked)

    async with store.transaction() as transaction:
        for each in left:
            assert await transaction.deliveries.get(account_id, each.id) is None
            assert await transaction.deliveries.lock(account_id, each.id) is None
        events = [each.event_id for each in left]
        assert await transaction.deliveries.of_events(account_id, events) == {}


async def test_history_of_deleted_endpoints_is_cleared_away_in_steps(
    store: AnyStore, records: Records, endpoint: Endpoint
) -> None:
    other = records.endpoint(records.id())
    async with store.transaction() as transaction:
        await introduce(transaction, other.account_id)
        await transaction.endpoints.add(other, records.secret())
    for each in (endpoint, other):
        await history(store, records, each, 5, FINAL)
    marked = sa.update(endpoints).values(deleted_at=records.clock.now(), enabled=False)
    await run(store, marked)

    seen = []
    while await purge(store, 2):
        counts = await row_counts(store)
        seen.append((counts.get("endpoints", 0), counts.get("deliveries", 0)))

    assert seen == [(2, 8), (2, 6), (1, 5), (1, 3), (1, 1), (0, 0)]
    assert await row_counts(store) == {
        "accounts": 2,
        "bulk_retries": 1,
        "signing_secrets": 2,
    }
