"""One partition a day: made ahead, by the first process that needs it, without delaying others."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.tables import PARTITIONED
from cuepost.domain.delivery import FINAL
from cuepost.domain.instants import lowest_at
from cuepost.testing import START, VirtualClock
from tests.support.postgres import fresh_database
from tests.support.records import Records
from tests.support.store_rows import add_deliveries, introduce, rows

LIMIT = 20
DAY = timedelta(days=1)
MIDNIGHT = START.replace(hour=0, minute=0, second=0, microsecond=0)
TABLES = [table.name for table in PARTITIONED]
BOUNDS = sa.text(
    "SELECT p.relname AS parent, c.relname AS name, "
    "pg_get_expr(c.relpartbound, c.oid) AS bound FROM pg_inherits i "
    "JOIN pg_class c ON c.oid = i.inhrelid JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE p.relkind = 'p' ORDER BY p.relname, c.relname"
)
INDEXES = sa.text(
    "SELECT indexrelid, count(i.inhrelid) AS partitions, bool_and(indisvalid) AS valid "
    "FROM pg_index x LEFT JOIN pg_inherits i ON i.inhparent = x.indexrelid "
    "WHERE indrelid::regclass::text = ANY (:names) GROUP BY 1"
).bindparams(names=TABLES)


@pytest.fixture
async def empty_store(postgres_url: str, template: str) -> AsyncIterator[PostgresStore]:
    """A database of its own, with the partitions of `START` and no others."""
    async with fresh_database(postgres_url, template=template) as url:
        store = PostgresStore(url)
        await store.open(START)
        yield store
        await store.close()


def partitions(first: datetime, days: int) -> set[tuple[str, str, str]]:
    return {
        (
            table,
            f"{table}_{day:%Y%m%d}",
            f"FOR VALUES FROM ('{lowest_at(day)}') TO ('{lowest_at(day + DAY)}')",
        )
        for table in TABLES
        for day in (first + DAY * number for number in range(days))
    }


async def existing(store: PostgresStore) -> set[tuple[str, str, str]]:
    return {(row.parent, row.name, row.bound) for row in await rows(store, BOUNDS)}


async def test_partitions_reach_from_yesterday_to_a_fortnight_ahead(
    empty_store: PostgresStore,
) -> None:
    assert await existing(empty_store) == partitions(MIDNIGHT - DAY, 16)


async def test_preparing_again_changes_nothing_and_later_adds_the_days_that_came(
    empty_store: PostgresStore,
) -> None:
    await empty_store.prepare_days(START)
    assert await existing(empty_store) == partitions(MIDNIGHT - DAY, 16)

    await empty_store.prepare_days(MIDNIGHT + 3 * DAY - timedelta(milliseconds=1))
    assert await existing(empty_store) == partitions(MIDNIGHT - DAY, 18)
    await empty_store.prepare_days(MIDNIGHT + 3 * DAY)
    assert await existing(empty_store) == partitions(MIDNIGHT - DAY, 19)


async def test_several_processes_may_prepare_at_once(empty_store: PostgresStore) -> None:
    url = empty_store.url
    others = [PostgresStore(url) for _ in range(4)]
    later = START + 30 * DAY
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        for store in others:
            group.create_task(store.prepare_days(later))
    for store in others:
        await store.close()
    made = partitions(MIDNIGHT - DAY, 16) | partitions(MIDNIGHT + 29 * DAY, 16)
    assert await existing(empty_store) == made


async def test_preparing_waits_neither_for_writers_nor_for_readers(
    empty_store: PostgresStore, records: Records
) -> None:
    event = records.event(records.id())
    async with empty_store.transaction() as writing, empty_store.snapshot() as reading:
        ended = records.delivery(event.account_id, event_id=event.id, status=FINAL[0])
        await introduce(writing, event.account_id)
        await writing.events.add([event])
        await add_deliveries(writing, ended)
        assert await reading.events.get(event.account_id, event.id) is None
        await asyncio.wait_for(empty_store.prepare_days(START + DAY), LIMIT)
    assert await existing(empty_store) == partitions(MIDNIGHT - DAY, 17)


async def test_every_partition_has_every_index(empty_store: PostgresStore) -> None:
    found = await rows(empty_store, INDEXES)
    assert {row.partitions for row in found} == {16}
    assert all(row.valid for row in found)
    assert len(found) == sum(1 + len(table.indexes) for table in PARTITIONED)


async def test_rows_lie_in_the_partition_of_the_day_in_their_ids(
    empty_store: PostgresStore, records: Records
) -> None:
    account_id = records.id()
    seconds_to_midnight = (MIDNIGHT + DAY - START).total_seconds()
    moments: list[UUID] = []
    for forward in (0, seconds_to_midnight - 0.001, 0.001, 13 * 86_400):
        records.clock.advance(forward)
        at_once = records.id()
        delivery = records.delivery(account_id, id=at_once, event_id=at_once, status=FINAL[0])
        moments.append(at_once)
        async with empty_store.transaction() as transaction:
            await add_deliveries(transaction, delivery)
            await transaction.attempts.add([records.attempt(delivery)])

    days = ("20260102", "20260102", "20260103", "20260116")
    for table, key in (("events", "id"), ("deliveries", "id"), ("attempts", "delivery_id")):
        found = sa.text(f"SELECT tableoid::regclass::text, {key} FROM {table} ORDER BY {key}")
        assert [tuple(row) for row in await rows(empty_store, found)] == [
            (f"{table}_{day}", moment) for day, moment in zip(days, moments, strict=True)
        ]


@pytest.mark.parametrize("days", [-2, 15])
async def test_a_day_without_a_partition_is_refused(empty_store: PostgresStore, days: int) -> None:
    """There is no default partition: one with rows in it could never be parted again."""
    records = Records(clock=VirtualClock(START + timedelta(days=days)))
    event = records.event(records.id())
    async with empty_store.transaction() as transaction:
        await introduce(transaction, event.account_id)
    with pytest.raises(Exception, match="no partition of relation"):
        async with empty_store.transaction() as transaction:
            await transaction.events.add([event])
