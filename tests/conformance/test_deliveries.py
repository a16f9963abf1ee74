"""Deliveries: what comes back, one by one and in pages."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import deliveries, queue
from cuepost.domain.delivery import FINAL, CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, end, lease, rows, run


async def add(store: AnyStore, *deliveries: Delivery) -> None:
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *deliveries)


async def put(store: AnyStore, records: Records, delivery: Delivery, state: str) -> None:
    """As the engine will: taken with a lease, or back for another attempt a minute later."""
    later = records.clock.now() + timedelta(minutes=1)
    if state == "delivering":
        await lease(store, records.id(), delivery.id, due_at=later)
    else:
        changed = {"status": state, "due_at": later}
        await run(store, sa.update(queue).where(queue.c.id == delivery.id).values(changed))


async def page(
    store: AnyStore, delivery: Delivery, limit: int = 10, **chosen: Any
) -> list[Delivery]:
    wanted = DeliveryFilter(**chosen)
    async with store.snapshot() as transaction:
        return await transaction.deliveries.page(delivery.account_id, wanted, Page(limit))


def ended(records: Records, status: DeliveryStatus, **more: Any) -> Delivery:
    cancelled = status is DeliveryStatus.CANCELLED
    reason = CancelReason.PROJECT_DELETED if cancelled else None
    named = {"account_id": records.id(), "reason": reason} | more
    return records.delivery(status=status, **named)


def identity(delivery: Delivery) -> tuple[UUID, ...]:
    return delivery.account_id, delivery.id, delivery.webhook_id, delivery.event_id


async def test_a_delivery_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    deliveries = [
        records.delivery(account_id),
        records.delivery(account_id, project_id=None, trigger=Trigger.TEST, budget=3),
        records.delivery(
            account_id, next_attempt_at=records.clock.now() + timedelta(milliseconds=1)
        ),
        *(
            ended(records, status, account_id=account_id, attempt_count=7, trigger=Trigger.MANUAL)
            for status in FINAL
        ),
        *(
            ended(records, DeliveryStatus.CANCELLED, account_id=account_id, reason=reason)
            for reason in CancelReason
        ),
    ]
    await add(store, *deliveries)

    async with store.transaction() as transaction:
        for method in (transaction.deliveries.get, transaction.deliveries.lock):
            assert [await method(account_id, each.id) for each in deliveries] == deliveries
            assert await method(account_id, records.id()) is None


async def test_only_deliveries_that_are_not_ended_are_queued(
    store: AnyStore, records: Records
) -> None:
    pending = [records.delivery(records.id()) for _ in range(2)]
    await add(store, *pending, *(ended(records, status) for status in FINAL))

    found = await rows(store, sa.select(queue).order_by(queue.c.id))

    assert [(row.id, row.event_id, row.status, row.due_at, row.worker) for row in found] == [
        (each.id, each.event_id, "pending", each.created_at, None) for each in pending
    ]
    history = await rows(store, sa.select(deliveries.c.status).order_by(deliveries.c.id))
    assert [row.status for row in history] == list(FINAL)


async def test_a_live_delivery_shows_what_the_queue_knows_of_it(
    store: AnyStore, records: Records
) -> None:
    account_id, later = records.id(), records.clock.now() + timedelta(minutes=1)
    flying, waiting = records.delivery(account_id), records.delivery(account_id)
    await add(store, flying, waiting)
    await put(store, records, flying, "delivering")
    await put(store, records, waiting, "retrying")

    async with store.snapshot() as transaction:
        found = await transaction.deliveries.page(account_id, DeliveryFilter(), Page(5))

    shown = [(each.id, each.status, each.next_attempt_at) for each in found]
    assert shown == [
        (waiting.id, DeliveryStatus.RETRYING, later),
        (flying.id, DeliveryStatus.DELIVERING, None),
    ]


async def test_hundreds_of_deliveries_are_added_at_once(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    deliveries = [records.delivery(account_id) for _ in range(537)]
    await add(store, *deliveries)
    await add(store)
    assert await page(store, deliveries[0], limit=1_000) == deliveries[::-1]


async def test_pages_go_on_behind_the_last_id(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    deliveries = [records.delivery(account_id) for _ in range(5)]
    await add(store, *deliveries, records.delivery(records.id()))

    async with store.snapshot() as transaction:
        first = await transaction.deliveries.page(account_id, DeliveryFilter(), Page(3))
        behind = Page(3, first[-1].id)
        second = await transaction.deliveries.page(account_id, DeliveryFilter(), behind)
    assert [first, second] == [deliveries[:1:-1], deliveries[1::-1]]


@pytest.mark.parametrize("status", FINAL)
async def test_ended_deliveries_are_chosen_by_status(
    store: AnyStore, records: Records, status: DeliveryStatus
) -> None:
    account_id = records.id()
    of = {each: [ended(records, each, account_id=account_id) for _ in range(2)] for each in FINAL}
    await add(store, records.delivery(account_id), *(one for each in of.values() for one in each))

    chosen, [first, second] = status, of[status]
    assert await page(store, first, status=chosen) == [second, first]
    assert await page(store, first, status=chosen, webhook_id=first.webhook_id) == [first]
    assert await page(store, first, status=chosen, project_id=second.project_id) == [second]
    assert await page(store, first, status=chosen, event_id=first.event_id) == [first]
    assert await page(store, first, status=chosen, event_type="project.ready") == []


@pytest.mark.parametrize("status", ["pending", "delivering", "retrying"])
async def test_live_deliveries_are_chosen_by_status(
    store: AnyStore, records: Records, status: str
) -> None:
    account_id = records.id()
    of = {
        state: [records.delivery(account_id) for _ in range(3)]
        for state in ("pending", "delivering", "retrying")
    }
    await add(store, *(one for each in of.values() for one in each))
    await add(store, ended(records, DeliveryStatus.FAILED, account_id=account_id))
    for state, each in of.items():
        for one in each:
            await put(store, records, one, state)

    async def ids(limit: int = 10, **chosen: Any) -> list[object]:
        found = await page(store, one, limit, status=DeliveryStatus(status), **chosen)
        assert {each.status for each in found} <= {DeliveryStatus(status)}
        return [each.id for each in found]

    [first, second, third] = of[status]
    assert await ids() == [third.id, second.id, first.id]
    assert await ids(limit=2) == [third.id, second.id]
    assert await ids(webhook_id=second.webhook_id) == [second.id]
    assert await ids(project_id=second.project_id) == [second.id]
    assert await ids(event_id=first.event_id) == [first.id]
    assert await ids(event_type="project.ready") == []


async def test_deliveries_are_chosen_by_what_they_belong_to(
    store: AnyStore, records: Records
) -> None:
    account_id, webhook_id, project_id = (records.id() for _ in range(3))
    event = records.event(account_id, project_id=project_id)
    deliveries = [
        records.delivery(
            account_id, webhook_id=webhook_id, event_id=event.id, project_id=project_id
        ),
        records.delivery(account_id, webhook_id=webhook_id, event_type="webhook.test"),
        records.delivery(account_id, event_id=event.id, project_id=project_id),
        records.delivery(account_id, project_id=project_id, event_type="project.ready"),
    ]
    await add(store, *deliveries)
    zero, one, two, three = deliveries

    assert await page(store, zero, webhook_id=webhook_id) == [one, zero]
    assert await page(store, zero, event_id=event.id) == [two, zero]
    assert await page(store, zero, project_id=project_id) == [three, two, zero]
    assert await page(store, zero, event_type="webhook.test") == [one]
    both: dict[str, Any] = {"project_id": project_id, "event_id": event.id}
    assert await page(store, zero, **both) == [two, zero]
    assert await page(store, zero, webhook_id=webhook_id, **both) == [zero]
    assert await page(store, zero, webhook_id=webhook_id, project_id=project_id) == [zero]


async def test_deliveries_are_chosen_by_the_time_in_their_ids(
    store: AnyStore, records: Records
) -> None:
    account_id, begin = records.id(), records.clock.now()
    deliveries = []
    for _ in range(4):
        deliveries.append(records.delivery(account_id))
        records.clock.advance(0.001)
    await add(store, *deliveries)
    second, fourth = begin + timedelta(milliseconds=1), begin + timedelta(milliseconds=3)

    for status in (None, DeliveryStatus.PENDING):
        found = await page(store, deliveries[0], since=second, until=fourth, status=status)
        assert found == deliveries[2:0:-1]
        assert await page(store, deliveries[0], since=fourth, status=status) == deliveries[3:]
        assert await page(store, deliveries[0], until=second, status=status) == deliveries[:1]


async def test_deliveries_are_found_by_their_events(store: AnyStore, records: Records) -> None:
    account_id = records.id()
    events, of = [], []
    for _ in range(3):
        event = records.event(account_id)
        events.append(event)
        of.append([records.delivery(account_id, event_id=event.id) for _ in range(2)])
        records.clock.advance(0.001)
    await add(store, *(one for each in of for one in each))

    async with store.snapshot() as transaction:
        found = await transaction.deliveries.of_events(
            account_id, [events[2].id, events[0].id, records.id()]
        )
        assert await transaction.deliveries.of_events(account_id, []) == {}
    assert found == {events[0].id: of[0], events[2].id: of[2]}


async def test_deliveries_that_wait_for_another_attempt_are_counted_by_endpoint(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()
    one, other, calm = (records.id() for _ in range(3))
    deliveries = [
        records.delivery(account_id, webhook_id=webhook_id)
        for webhook_id in (one, one, other, one, calm)
    ]
    await add(store, *deliveries)
    for each in deliveries[:3]:
        await put(store, records, each, "retrying")
    await put(store, records, deliveries[3], "delivering")

    async with store.snapshot() as transaction:
        found = await transaction.deliveries.retrying(account_id, [one, other, calm])
        assert await transaction.deliveries.retrying(account_id, []) == {}
    assert found == {one: 2, other: 1}


async def delivered_then_failed(store: AnyStore, records: Records, delivery: Delivery) -> None:
    """As the engine does, when someone has sent it again."""
    async with store.transaction() as transaction:
        now = records.clock.now()
        await transaction.deliveries.send_again(delivery.account_id, [delivery.id], now)
        await end(transaction, delivery.id, DeliveryStatus.FAILED, now)


async def test_failed_leaves_out_what_was_delivered_before_unless_asked(
    store: AnyStore, records: Records
) -> None:
    of: dict[str, Any] = {"account_id": records.id(), "webhook_id": records.id()}
    failed = [ended(records, DeliveryStatus.FAILED, **of) for _ in range(2)]
    before = ended(records, DeliveryStatus.DELIVERED, **of)
    await add(store, failed[0], before, failed[1])
    await delivered_then_failed(store, records, before)

    for scope in ({}, {"webhook_id": before.webhook_id}, {"event_type": before.event_type}):
        found = await page(store, before, status=DeliveryStatus.FAILED, **scope)
        assert found == failed[::-1]
        asked: dict[str, Any] = {"include_delivered": True, **scope}
        found = await page(store, before, status=DeliveryStatus.FAILED, **asked)
        assert {each.id for each in found} == {before.id, *(each.id for each in failed)}
        everything = await page(store, before, **scope)
        assert [each.id for each in everything] == [each.id for each in found]
