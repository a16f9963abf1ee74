"""Stopping what waits, and sending again what has ended."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.records.stops import STOPPED_AT_ONCE
from cuepost.adapters.storage.tables import deliveries, queue
from cuepost.domain.delivery import FINAL, CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, end, lease, rows, run

DISABLED = CancelReason.ENDPOINT_DISABLED


async def add(store: AnyStore, *made: Delivery) -> None:
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *made)


async def all_of(store: AnyStore, delivery: Delivery) -> list[Delivery]:
    async with store.snapshot() as transaction:
        return await transaction.deliveries.page(
            delivery.account_id, DeliveryFilter(), Page(10_000)
        )


async def change(store: AnyStore, delivery: Delivery, **values: object) -> None:
    changed = sa.update(queue).where(queue.c.id == delivery.id).values(**values)
    assert await run(store, changed) == 1


def stopped(delivery: Delivery, reason: CancelReason, records: Records) -> Delivery:
    return replace(
        delivery,
        status=DeliveryStatus.CANCELLED,
        reason=reason,
        next_attempt_at=None,
        finished_at=records.clock.now(),
    )


async def of_two_endpoints(store: AnyStore, records: Records) -> Sequence[Delivery]:
    """Two wait for the first endpoint, one for the second, one has ended at the first."""
    account_id, first, second = (records.id() for _ in range(3))
    pending, retrying = (records.delivery(account_id, webhook_id=first) for _ in range(2))
    other = records.delivery(account_id, webhook_id=second)
    ended = records.delivery(account_id, webhook_id=first, status=DeliveryStatus.FAILED)
    await add(store, pending, retrying, other, ended)
    await change(store, retrying, status="retrying")
    records.clock.advance(0.001)
    return pending, retrying, other, ended


async def test_what_waits_for_an_endpoint_is_cancelled_with_the_reason(
    store: AnyStore, records: Records
) -> None:
    pending, retrying, other, ended = await of_two_endpoints(store, records)

    async with store.transaction() as transaction:
        await transaction.deliveries.stop_endpoint(
            pending.account_id, pending.webhook_id, DISABLED, records.clock.now()
        )

    assert await all_of(store, pending) == [
        ended,
        other,
        stopped(retrying, DISABLED, records),
        stopped(pending, DISABLED, records),
    ]
    assert [row.id for row in await rows(store, sa.select(queue))] == [other.id]


async def test_what_waits_for_any_endpoint_of_an_account_is_cancelled(
    store: AnyStore, records: Records
) -> None:
    pending, retrying, other, ended = await of_two_endpoints(store, records)
    stranger = records.delivery(records.id())
    await add(store, stranger)

    async with store.transaction() as transaction:
        await transaction.deliveries.stop_endpoint(
            pending.account_id, None, DISABLED, records.clock.now()
        )

    cancelled = [stopped(each, DISABLED, records) for each in (other, retrying, pending)]
    assert await all_of(store, pending) == [ended, *cancelled]
    assert await all_of(store, stranger) == [stranger]


async def test_what_waits_for_a_project_is_cancelled_at_every_endpoint(
    store: AnyStore, records: Records
) -> None:
    account_id, project_id = records.id(), records.id()
    mine = [records.delivery(account_id, project_id=project_id) for _ in range(2)]
    ended = records.delivery(account_id, project_id=project_id, status=DeliveryStatus.DELIVERED)
    other, test = records.delivery(account_id), records.delivery(account_id, project_id=None)
    await add(store, *mine, ended, other, test)
    records.clock.advance(0.001)

    reason = CancelReason.PROJECT_DELETED
    async with store.transaction() as transaction:
        await transaction.deliveries.stop_project(
            account_id, project_id, reason, records.clock.now()
        )

    cancelled = [stopped(each, reason, records) for each in reversed(mine)]
    assert await all_of(store, other) == [test, other, ended, *cancelled]
    queued = await rows(store, sa.select(queue.c.id).order_by(queue.c.id))
    assert [row.id for row in queued] == [other.id, test.id]


@pytest.mark.parametrize("by", ["endpoint", "account", "project"])
async def test_an_attempt_in_flight_may_finish_but_is_the_last(
    store: AnyStore, records: Records, by: str
) -> None:
    flying = records.delivery(records.id())
    token = records.id()
    await add(store, flying)
    await lease(store, token)

    async with store.transaction() as transaction:
        stop, now = transaction.deliveries, records.clock.now()
        if by == "project":
            assert flying.project_id is not None
            await stop.stop_project(
                flying.account_id, flying.project_id, CancelReason.PROJECT_DELETED, now
            )
        else:
            webhook_id = flying.webhook_id if by == "endpoint" else None
            await stop.stop_endpoint(flying.account_id, webhook_id, DISABLED, now)

    reason = CancelReason.PROJECT_DELETED if by == "project" else DISABLED
    in_flight = replace(flying, status=DeliveryStatus.DELIVERING, next_attempt_at=None)
    assert await all_of(store, flying) == [in_flight]
    [row] = await rows(store, sa.select(queue))
    assert (row.status, row.worker, row.stop_reason) == ("delivering", token, reason)


async def test_very_many_waiting_deliveries_are_stopped_together(
    store: AnyStore, records: Records
) -> None:
    account_id, webhook_id = records.id(), records.id()
    many = [
        records.delivery(account_id, webhook_id=webhook_id) for _ in range(STOPPED_AT_ONCE * 2 + 1)
    ]
    await add(store, *many)

    async with store.transaction() as transaction:
        await transaction.deliveries.stop_endpoint(
            account_id, webhook_id, DISABLED, records.clock.now()
        )

    counted = sa.select(deliveries.c.status, sa.func.count()).group_by(deliveries.c.status)
    assert [tuple(row) for row in await rows(store, counted)] == [("cancelled", len(many))]
    assert await rows(store, sa.select(queue)) == []


async def test_the_first_acknowledgement_stays_whatever_becomes_of_later_budgets(
    store: AnyStore, records: Records
) -> None:
    delivery = records.delivery(records.id(), status=DeliveryStatus.DELIVERED)
    await add(store, delivery)
    assert delivery.delivered_at is not None

    for status in (DeliveryStatus.DELIVERED, DeliveryStatus.FAILED, DeliveryStatus.DELIVERED):
        records.clock.advance(60)
        async with store.transaction() as transaction:
            now = records.clock.now()
            await transaction.deliveries.send_again(delivery.account_id, [delivery.id], now)
        [pending] = await all_of(store, delivery)
        async with store.transaction() as transaction:
            await end(transaction, delivery.id, status, records.clock.now())
        [ended] = await all_of(store, delivery)
        assert (pending.status, pending.delivered_at) == ("pending", delivery.delivered_at)
        assert (ended.status, ended.delivered_at) == (status, delivery.delivered_at)


async def test_ended_deliveries_are_sent_again_with_a_new_budget(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    ended = [
        records.delivery(
            account_id,
            status=status,
            reason=DISABLED if status is DeliveryStatus.CANCELLED else None,
            attempt_count=3,
            budget=number,
        )
        for number, status in enumerate(FINAL, start=1)
    ]
    left = records.delivery(account_id, status=DeliveryStatus.FAILED)
    await add(store, *ended, left)
    records.clock.advance(60)

    async with store.transaction() as transaction:
        chosen = [each.id for each in ended]
        sent = await transaction.deliveries.send_again(account_id, chosen, records.clock.now())

    assert sent == 3
    assert await all_of(store, left) == [left] + [
        replace(
            each,
            status=DeliveryStatus.PENDING,
            trigger=Trigger.MANUAL,
            reason=None,
            budget=each.budget + 1,
            next_attempt_at=records.clock.now(),
            finished_at=None,
        )
        for each in reversed(ended)
    ]
    queued = await rows(store, sa.select(queue).order_by(queue.c.id))
    assert [(row.status, row.attempts_made) for row in queued] == [("pending", 0)] * 3


async def test_a_delivery_under_way_is_not_sent_again(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    pending, ended = records.delivery(account_id), records.delivery(account_id, status=FINAL[0])
    await add(store, pending, ended)

    async with store.transaction() as transaction:
        chosen = [pending.id, ended.id, records.id()]
        now = records.clock.now()
        assert await transaction.deliveries.send_again(account_id, chosen, now) == 1
        assert await transaction.deliveries.send_again(account_id, chosen, now) == 0
        assert await transaction.deliveries.send_again(account_id, [], now) == 0
        assert await transaction.deliveries.get(account_id, pending.id) == pending
