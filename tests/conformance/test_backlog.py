"""How much waits and for how long is known at once, however long the queue is."""

from datetime import timedelta

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.records import backlog
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.ports.telemetry import Waiting
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, lease, run

SECOND = timedelta(seconds=1)
PENDING, DELIVERING, RETRYING = (
    DeliveryStatus.PENDING,
    DeliveryStatus.DELIVERING,
    DeliveryStatus.RETRYING,
)


async def seen(store: AnyStore, after: timedelta = timedelta(0)) -> dict[DeliveryStatus, Waiting]:
    async with store.snapshot() as transaction:
        return dict(await transaction.backlog.waiting(START + after))


async def queue(
    store: AnyStore, records: Records, count: int, state: DeliveryStatus, due: timedelta
) -> list[Delivery]:
    """Deliveries, each to an endpoint of its own, that are due at this offset from the start."""
    made = [
        records.delivery(records.id(), next_attempt_at=START + due, status=PENDING)
        for _ in range(count)
    ]
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *made)
    ids = [each.id for each in made]
    if state is DELIVERING:
        await lease(store, records.id(), *ids)
    else:
        rows = tables.queue
        await run(store, sa.update(rows).where(rows.c.id.in_(ids)).values(status=state))
    return made


async def test_an_empty_queue_has_nothing_waiting(store: AnyStore) -> None:
    assert await seen(store) == {PENDING: Waiting(), DELIVERING: Waiting(), RETRYING: Waiting()}


async def test_each_state_is_counted_and_its_oldest_due_one_is_found(
    store: AnyStore, records: Records
) -> None:
    await queue(store, records, 2, PENDING, due=-3 * SECOND)
    await queue(store, records, 1, PENDING, due=-1 * SECOND)
    await queue(store, records, 2, RETRYING, due=5 * SECOND)
    await queue(store, records, 1, DELIVERING, due=-7 * SECOND)

    assert await seen(store) == {
        PENDING: Waiting(3, 3 * SECOND),
        DELIVERING: Waiting(1, 7 * SECOND),
        RETRYING: Waiting(2, timedelta(0)),
    }
    assert (await seen(store, 8 * SECOND))[RETRYING] == Waiting(2, 3 * SECOND)


async def test_a_state_behind_very_many_of_the_other_is_still_found(
    store: AnyStore, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backlog, "COUNTED_AT_MOST", 3)
    await queue(store, records, 5, PENDING, due=-9 * SECOND)
    await queue(store, records, 2, RETRYING, due=-4 * SECOND)

    assert await seen(store) == {
        PENDING: Waiting(3, 9 * SECOND),
        DELIVERING: Waiting(),
        RETRYING: Waiting(1, 4 * SECOND),
    }
