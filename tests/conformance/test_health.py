"""Endpoints carry how they are doing, written with the outcomes and seldom under load."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import anyio
import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.health import QUIET, Condition
from cuepost.ports.dispatch import NextStep, Result
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_rows import AnyStore, lease, rows, run

SECOND = timedelta(seconds=1)
DELIVERED, FAILED, RETRYING = (
    DeliveryStatus.DELIVERED,
    DeliveryStatus.FAILED,
    DeliveryStatus.RETRYING,
)


@dataclass(frozen=True, slots=True)
class Receiver:
    """An endpoint in a store, and what came of attempts to reach it."""

    store: AnyStore
    records: Records
    endpoint: Endpoint

    async def answer(self, *statuses: DeliveryStatus, now: datetime, late: bool = False) -> None:
        """A group of deliveries, each with one attempt that came out like this."""
        records, worker, endpoint = self.records, self.records.id(), self.endpoint
        made = [records.delivery(endpoint.account_id, webhook_id=endpoint.id) for _ in statuses]
        async with self.store.transaction() as transaction:
            await transaction.deliveries.add(made)
        await lease(self.store, worker, attempts_made=2)
        numbers = await numbers_of(self.store, endpoint)
        results = [
            Result(
                records.assignment(delivery, **numbers, number=3, attempt_count=2),
                records.attempt(delivery, number=3),
                NextStep(status, due_at=now + SECOND if status is RETRYING else None),
            )
            for delivery, status in zip(made, statuses, strict=True)
        ]
        async with self.store.transaction() as transaction:
            sender = records.id() if late else worker
            refused = await transaction.outcomes.record(sender, results, now)
        assert refused == (len(results) if late else 0)
        await run(
            self.store,
            sa.update(tables.queue).values(status=DeliveryStatus.RETRYING, worker=None),
        )
        async with self.store.transaction() as transaction:
            await transaction.deliveries.stop_endpoint(
                endpoint.account_id, None, CancelReason.ENDPOINT_DISABLED, now
            )

    async def health(self) -> Condition:
        async with self.store.snapshot() as transaction:
            found = await transaction.endpoints.get(self.endpoint.account_id, self.endpoint.id)
        assert found is not None
        return Condition.of(found)


@pytest.fixture
async def receiver(store: AnyStore, records: Records) -> Receiver:
    account = records.account()
    unknown = dict.fromkeys(("last_delivered_at", "last_failed_at"))
    unknown |= dict.fromkeys(("troubled_since", "failing_since"))
    endpoint = records.endpoint(account.id, **unknown)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.endpoints.add(endpoint, records.secret())
    return Receiver(store, records, endpoint)


async def test_a_delivered_one_moves_the_last_delivery(receiver: Receiver) -> None:
    await receiver.answer(DELIVERED, now=START)
    assert await receiver.health() == Condition(START)

    await receiver.answer(DELIVERED, now=START + SECOND)
    assert await receiver.health() == Condition(START + SECOND)


async def test_it_is_in_trouble_from_the_first_failed_attempt_to_the_next_delivered_one(
    receiver: Receiver,
) -> None:
    await receiver.answer(DELIVERED, now=START)
    await receiver.answer(RETRYING, now=START + SECOND)
    assert await receiver.health() == Condition(START, START + SECOND, START + SECOND)
    await receiver.answer(RETRYING, now=START + 2 * SECOND)
    assert await receiver.health() == Condition(START, START + 2 * SECOND, START + SECOND)

    await receiver.answer(DELIVERED, now=START + 3 * SECOND)
    assert await receiver.health() == Condition(START + 3 * SECOND, START + 2 * SECOND)


async def test_it_fails_from_the_first_spent_budget_until_it_has_recovered(
    receiver: Receiver,
) -> None:
    failed, recovered = START + SECOND, START + SECOND + QUIET
    await receiver.answer(FAILED, now=failed)
    await receiver.answer(FAILED, now=failed + SECOND / 2)
    assert await receiver.health() == Condition(None, failed, failed, failed)

    await receiver.answer(DELIVERED, now=recovered - SECOND)
    assert await receiver.health() == Condition(recovered - SECOND, failed, None, failed)
    await receiver.answer(DELIVERED, now=recovered)
    assert await receiver.health() == Condition(recovered, failed)


async def test_it_fails_although_some_arrive_when_most_do_not(receiver: Receiver) -> None:
    await receiver.answer(*[DELIVERED] * 5, now=START + SECOND)
    await receiver.answer(*[FAILED] * 4, now=START + 2 * SECOND)
    assert (await receiver.health()).failing_since is None

    await receiver.answer(FAILED, now=START + 3 * SECOND)
    assert (await receiver.health()).failing_since == START + 3 * SECOND


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        ((FAILED, DELIVERED), Condition(START, START, None, START)),
        ((RETRYING, DELIVERED), Condition(START, START)),
        ((DELIVERED, RETRYING), Condition(START, START, START)),
        ((RETRYING, RETRYING), Condition(None, START, START)),
    ],
)
async def test_in_a_group_the_last_one_counts(
    receiver: Receiver, group: Sequence[DeliveryStatus], expected: Condition
) -> None:
    await receiver.answer(*group, now=START)

    assert await receiver.health() == expected


async def test_under_load_it_is_written_once_a_second(receiver: Receiver) -> None:
    for milliseconds in (0, 1, 500, 999, 1000, 1400):
        now = START + timedelta(milliseconds=milliseconds)
        await receiver.answer(DELIVERED, DELIVERED, now=now)
    assert await receiver.health() == Condition(START + SECOND)

    failing = START + 2 * SECOND
    for milliseconds in (0, 1, 500, 999, 1000, 1400):
        now = failing + timedelta(milliseconds=milliseconds)
        await receiver.answer(RETRYING, RETRYING, now=now)
    assert await receiver.health() == Condition(START + SECOND, failing + SECOND, failing)


async def test_a_failed_attempt_and_a_delivery_are_written_at_once(receiver: Receiver) -> None:
    shortly = timedelta(milliseconds=1)
    await receiver.answer(DELIVERED, now=START)
    await receiver.answer(RETRYING, now=START + shortly)
    assert (await receiver.health()).troubled_since == START + shortly

    await receiver.answer(DELIVERED, now=START + 2 * shortly)
    assert await receiver.health() == Condition(START + 2 * shortly, START + shortly)


async def test_a_late_result_says_nothing(receiver: Receiver) -> None:
    await receiver.answer(DELIVERED, FAILED, now=START, late=True)

    assert await receiver.health() == Condition()


async def test_other_endpoints_and_other_columns_are_left_alone(
    receiver: Receiver, store: AnyStore, records: Records
) -> None:
    other = records.endpoint(receiver.endpoint.account_id)
    async with store.transaction() as transaction:
        await transaction.endpoints.add(other, records.secret())
    await receiver.answer(FAILED, now=START)

    async with store.snapshot() as transaction:
        found = await transaction.endpoints.get(other.account_id, other.id)
    assert found == other
    [row] = await rows(
        store,
        sa.select(tables.endpoints.c.updated_at).where(
            tables.endpoints.c.id == receiver.endpoint.id
        ),
    )
    assert row.updated_at == receiver.endpoint.updated_at


async def test_whoever_disables_and_whoever_records_lock_in_one_order(
    postgres_store: PostgresStore, records: Records
) -> None:
    """The endpoint comes first; the other way round they would deadlock now and then."""
    store, worker, account = postgres_store, records.id(), records.account()
    endpoint = records.endpoint(account.id, failing_since=None)
    delivery = records.delivery(account.id, webhook_id=endpoint.id)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.endpoints.add(endpoint, records.secret())
        await transaction.deliveries.add([delivery])
    await lease(store, worker, attempts_made=2)
    numbers = await numbers_of(store, endpoint)
    assignment = records.assignment(delivery, **numbers, number=3, attempt_count=2)
    result = Result(assignment, records.attempt(delivery), NextStep(FAILED))

    async def record() -> None:
        async with store.transaction() as transaction:
            assert await transaction.outcomes.record(worker, [result], START) == 0

    with anyio.fail_after(20):
        async with asyncio.TaskGroup() as group, store.transaction() as disabling:
            await disabling.endpoints.lock(account.id, endpoint.id)
            recording = group.create_task(record())
            while not await a_backend_waits(store):
                assert not recording.done()
            await disabling.deliveries.stop_endpoint(
                account.id, endpoint.id, CancelReason.ENDPOINT_DISABLED, START
            )


async def a_backend_waits(store: AnyStore) -> bool:
    statement = "SELECT 1 FROM pg_locks WHERE NOT granted"
    return bool(await rows(store, sa.text(statement)))


async def numbers_of(store: AnyStore, endpoint: Endpoint) -> dict[str, int]:
    """Of its account and of its lane."""
    [row] = await rows(
        store,
        sa.select(tables.accounts.c.number.label("account"), tables.endpoints.c.number)
        .join(tables.accounts, tables.accounts.c.id == tables.endpoints.c.account_id)
        .where(tables.endpoints.c.id == endpoint.id),
    )
    return {"account": row.account, "lane": row.number}
