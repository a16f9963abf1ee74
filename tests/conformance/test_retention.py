"""What is old leaves in small steps, on both engines; what is live or young stays."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.ports.retention import Expiring
from cuepost.ports.store import Contention
from cuepost.testing import START
from tests.support.records import Records
from tests.support.store_rows import AnyStore, introduce, row_counts, rows

DAY = timedelta(days=1)
MIDNIGHT = START.replace(hour=0, minute=0, second=0, microsecond=0) + DAY
MANY = 1_000


@pytest.fixture(autouse=True)
async def all_days_stand_again(opened_postgres: PostgresStore) -> AsyncIterator[None]:
    yield
    await opened_postgres.prepare_days(START)


async def add_history(
    store: AnyStore, records: Records, count: int = 1, status: str = "delivered"
) -> list[Delivery]:
    """An account with `count` events, each with a delivery and its attempt."""
    account = records.account()
    made = []
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        for _ in range(count):
            event = records.event(account.id)
            delivery = records.delivery(
                account.id, event_id=event.id, status=DeliveryStatus(status)
            )
            await transaction.events.add([event])
            await introduce(transaction, (account.id, delivery.webhook_id))
            await transaction.deliveries.add([delivery])
            await transaction.attempts.add([records.attempt(delivery)])
            made.append(delivery)
    return made


async def has_old(store: AnyStore, what: Expiring, before: datetime) -> bool:
    async with store.snapshot() as transaction:
        return await transaction.retention.any_before(what, before)


async def forget(store: AnyStore, what: Expiring, before: datetime, count: int = MANY) -> bool:
    async with store.transaction() as transaction:
        return await transaction.retention.delete_before(what, before, count)


async def delete_all(store: AnyStore, what: Expiring, before: datetime, count: int = MANY) -> int:
    steps = 0
    while await has_old(store, what, before):
        await forget(store, what, before, count)
        steps += 1
    return steps


async def delivery_ids(store: AnyStore) -> set[object]:
    return {row.id for row in await rows(store, sa.select(tables.deliveries.c.id))}


async def send_again(store: AnyStore, delivery: Delivery) -> None:
    async with store.transaction() as transaction:
        again = await transaction.deliveries.send_again(
            delivery.account_id, [delivery.id], START + DAY
        )
    assert again == 1


async def test_history_leaves_with_its_attempts_and_events_and_the_younger_stays(
    store: AnyStore, records: Records
) -> None:
    await add_history(store, records, 3)
    await add_history(store, records, 2)
    records.clock.advance(days=1)
    young = await add_history(store, records, 2)

    await delete_all(store, Expiring.HISTORY, MIDNIGHT)

    assert await delivery_ids(store) == {delivery.id for delivery in young}
    counts = await row_counts(store)
    assert (counts["events"], counts["deliveries"], counts["attempts"]) == (2, 2, 2)
    assert not await forget(store, Expiring.HISTORY, MIDNIGHT)


async def test_an_event_without_deliveries_leaves_too(store: AnyStore, records: Records) -> None:
    account = records.account()
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.events.add([records.event(account.id)])

    await delete_all(store, Expiring.HISTORY, MIDNIGHT)

    assert "events" not in await row_counts(store)


async def test_what_is_being_sent_again_stays_until_that_has_ended(
    store: AnyStore, records: Records
) -> None:
    [delivery] = await add_history(store, records, 1, "failed")
    await send_again(store, delivery)

    await delete_all(store, Expiring.HISTORY, MIDNIGHT)
    assert not await forget(store, Expiring.HISTORY, MIDNIGHT)
    counts = await row_counts(store)
    assert (counts["events"], counts["queue"], counts["attempts"]) == (1, 1, 1)

    async with store.transaction() as transaction:
        await transaction.deliveries.stop_endpoint(
            delivery.account_id, delivery.webhook_id, CancelReason.ENDPOINT_DISABLED, START + DAY
        )
    await delete_all(store, Expiring.HISTORY, MIDNIGHT)
    assert set(await row_counts(store)) == {"accounts", "endpoints", "delivery_counts"}


async def test_on_sqlite_it_leaves_in_chunks(sqlite_store: SqliteStore, records: Records) -> None:
    await add_history(sqlite_store, records, 5)

    left = []
    while await forget(sqlite_store, Expiring.HISTORY, MIDNIGHT, 2):
        left.append(len(await delivery_ids(sqlite_store)))

    assert left[:3] == [3, 1, 0]
    assert set(await row_counts(sqlite_store)) == {"accounts", "endpoints", "delivery_counts"}


async def test_on_postgresql_a_day_is_dropped_only_once_it_is_over(
    postgres_store: PostgresStore, records: Records
) -> None:
    await add_history(postgres_store, records)
    almost = MIDNIGHT - timedelta(milliseconds=1)
    days = await partition_days(postgres_store)

    while await forget(postgres_store, Expiring.HISTORY, almost):
        pass
    assert days - await partition_days(postgres_store) == {"20260101"}
    while await forget(postgres_store, Expiring.HISTORY, MIDNIGHT):
        pass
    assert days - await partition_days(postgres_store) == {"20260101", "20260102"}
    async with postgres_store.snapshot() as transaction:
        assert await transaction.retention.lacks_days(START)


async def test_a_drop_gives_way_to_whoever_is_at_work_and_sees_what_they_did(
    postgres_store: PostgresStore, records: Records
) -> None:
    [delivery] = await add_history(postgres_store, records)
    await forget(postgres_store, Expiring.HISTORY, MIDNIGHT)  # the empty day before

    async with postgres_store.transaction() as other:
        await other.deliveries.send_again(delivery.account_id, [delivery.id], START + DAY)
        assert await has_old(postgres_store, Expiring.HISTORY, MIDNIGHT)
        with pytest.raises(Contention):
            await forget(postgres_store, Expiring.HISTORY, MIDNIGHT)

    assert not await forget(postgres_store, Expiring.HISTORY, MIDNIGHT)
    [live] = await rows(postgres_store, sa.select(tables.queue.c.id))
    assert live.id == delivery.id
    async with postgres_store.transaction() as transaction:
        await transaction.deliveries.stop_endpoint(
            delivery.account_id, None, CancelReason.ENDPOINT_DISABLED, START + DAY
        )


async def test_many_can_forget_at_once(store: AnyStore, records: Records) -> None:
    await add_history(store, records, 20)

    async def work() -> None:
        try:
            while await forget(store, Expiring.HISTORY, MIDNIGHT, 3):
                pass
        except Contention:
            pass

    await asyncio.gather(*(work() for _ in range(4)))
    await delete_all(store, Expiring.HISTORY, MIDNIGHT)

    assert set(await row_counts(store)) == {"accounts", "endpoints", "delivery_counts"}


async def test_old_bulk_retries_leave_unless_they_are_still_running(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    ended = {"state": BulkRetryState.FINISHED, "finished_at": START}
    jobs = [records.bulk_retry(account.id, records.id(), **ended) for _ in range(3)]
    running = records.bulk_retry(account.id, records.id())
    records.clock.advance(days=1)
    young = records.bulk_retry(account.id, records.id(), **ended)
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        for job in (*jobs, running, young):
            await transaction.bulk_retries.add(job)

    steps = await delete_all(store, Expiring.BULK_RETRIES, MIDNIGHT, 2)

    left = await rows(store, sa.select(tables.bulk_retries.c.id))
    assert ({row.id for row in left}, steps) == ({running.id, young.id}, 2)


async def test_secrets_leave_when_their_overlap_has_ended(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    endpoint = records.endpoint(account.id)
    now = records.clock.now()
    async with store.transaction() as transaction:
        await transaction.endpoints.add(endpoint, records.secret(1, expires_at=now))
        for version, expires_at in ((2, now + timedelta(milliseconds=1)), (3, None)):
            secret = records.secret(version, expires_at=expires_at)
            await transaction.endpoints.put_secret(account.id, endpoint.id, secret)

    assert await delete_all(store, Expiring.SECRETS, now) == 1

    async with store.snapshot() as transaction:
        found = await transaction.endpoints.secrets(account.id, [endpoint.id])
    assert {secret.version for secret in found[endpoint.id]} == {2, 3}


async def test_reports_idempotency_keys_and_the_audit_trail_leave_in_chunks(
    store: AnyStore, records: Records
) -> None:
    account_id = records.id()

    async def add(count: int) -> None:
        now = records.clock.now()
        async with store.transaction() as transaction:
            await introduce(transaction, account_id)
            for _ in range(count):
                key = str(records.id())
                await transaction.idempotency.claim(account_id, account_id, key, b"", now)
                await transaction.audit.add(records.audit_entry(account_id))
                await transaction.reports.add({(account_id, key): records.report()}, now)

    await add(5)
    records.clock.advance(days=1)
    await add(1)

    kinds = (Expiring.REPORTS, Expiring.IDEMPOTENCY_KEYS, Expiring.AUDIT_TRAIL)
    assert [await delete_all(store, what, MIDNIGHT, 2) for what in kinds] == [3, 3, 3]
    assert await row_counts(store) == {
        "accounts": 1,
        "reports": 1,
        "idempotency_keys": 1,
        "audit_entries": 1,
    }


async def test_whoever_forgets_is_told_whether_there_may_be_more(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    ended = {"state": BulkRetryState.FINISHED, "finished_at": START}
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        for _ in range(3):
            await transaction.bulk_retries.add(
                records.bulk_retry(account.id, records.id(), **ended)
            )
            await transaction.audit.add(records.audit_entry(account.id))

    reported = {
        what: [await forget(store, what, MIDNIGHT, 2) for _ in range(3)]
        for what in (Expiring.AUDIT_TRAIL, Expiring.BULK_RETRIES)
    }

    # Bulk retries leave account by account, and the next account may have some.
    assert reported == {
        Expiring.AUDIT_TRAIL: [True, False, False],
        Expiring.BULK_RETRIES: [True, True, False],
    }


async def partition_days(store: PostgresStore) -> set[str]:
    statement = "SELECT relname FROM pg_class WHERE relname ~ '^(events|deliveries)_[0-9]{8}$'"
    return {row.relname.rpartition("_")[2] for row in await rows(store, sa.text(statement))}
