"""History of revision 0006 is moved as a whole, however often that is interrupted.

`CUEPOST_TEST_UPGRADE_ROWS` says how many deliveries the large store has; `pytest -rP` shows how
quickly they are moved.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import schema, upgrading
from cuepost.adapters.storage.migrations import old_history
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import metadata, queue
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from tests.migrations import old_values as old
from tests.migrations.conftest import Database
from tests.migrations.old_branches import DEAD_WORKER, LEFT_BEHIND, WAYS, OldBranches, Way
from tests.migrations.test_upgrading import run_opener, upgrade_to
from tests.support.store_rows import AnyStore, contradictions, row_counts, rows

MANY = int(os.environ.get("CUEPOST_TEST_UPGRADE_ROWS", "3000"))
CLOCK = SystemClock()
SHOWN = {name for name, way in WAYS.items() if way.account == old.ACCOUNT} - {
    *LEFT_BEHIND,
    "of a deleted endpoint",
}

pytestmark = pytest.mark.timeout(60 + MANY // 500)


@pytest.fixture
def before() -> OldBranches:
    return OldBranches(CLOCK.now())


@pytest.fixture
async def filled(database: Database, before: OldBranches) -> Database:
    await database.do(lambda connection: upgrade_to("0006", connection))
    await database.do(before.fill)
    return database


@asynccontextmanager
async def opened(database: Database) -> AsyncIterator[AnyStore]:
    store: AnyStore
    if database.url.startswith("postgresql"):
        store = PostgresStore(database.url)
        await store.open(CLOCK.now())
    else:
        store = SqliteStore(Path(database.url.removeprefix("sqlite:///")), CLOCK)
        await store.open()
    try:
        yield store
    finally:
        await store.close()


async def page(store: AnyStore) -> dict[str, Delivery]:
    async with store.snapshot() as transaction:
        found = await transaction.deliveries.page(old.ACCOUNT, DeliveryFilter(), Page(1_000))
    return {str(each.id): each for each in found}


async def test_every_delivery_is_what_it_was_before(filled: Database, before: OldBranches) -> None:
    await filled.upgrade()
    async with opened(filled) as store:
        found = await page(store)
        for day in range(before.days):
            for name in SHOWN:
                delivery = found.pop(str(before.id_of(name, day)))
                require_the_same(delivery, WAYS[name], before, name, day)
                await require_attempts(store, delivery, WAYS[name])
        assert found == {}
        assert await contradictions(store) == []


def require_the_same(
    delivery: Delivery, way: Way, before: OldBranches, name: str, day: int
) -> None:
    row = before._delivery(name, day, before.id_of(name, day, 0x200))
    assert delivery.status == (way.status or way.state)
    for column in ("webhook_id", "event_id", "event_type", "project_id", "trigger", "reason"):
        assert getattr(delivery, column) == row[column], column
    for column in ("attempt_count", "budget"):
        assert getattr(delivery, column) == row[column], column
    assert str(delivery.finished_at)[:-9] == str(row["finished_at"])[:-9]
    acknowledged = row["delivered_at"] or (
        row["finished_at"] if way.status == "delivered" else None
    )
    assert str(delivery.delivered_at)[:-9] == str(acknowledged)[:-9]


async def require_attempts(store: AnyStore, delivery: Delivery, way: Way) -> None:
    async with store.snapshot() as transaction:
        made = await transaction.attempts.of_delivery(old.ACCOUNT, delivery.id)
        last = await transaction.attempts.last_of(old.ACCOUNT, [delivery.id])
    expected = [
        (budget, number, "blocked_destination" if outcome == "dns_error" else outcome)
        for budget, number, outcome in way.attempts
    ]
    assert [(each.budget, each.number, each.outcome) for each in made] == expected
    assert [each.response_body for each in made] == [each[2].encode() for each in way.attempts]
    assert list(last.values()) == made[-1:]


async def test_only_what_no_caller_could_see_is_left_behind(
    filled: Database, before: OldBranches
) -> None:
    tables = ("events", "reports", "deliveries", "attempts", "queue")
    were = {name: await counted(filled, name) for name in tables}
    await filled.upgrade()

    lost = [WAYS[name] for name in LEFT_BEHIND]
    live = [way for way in WAYS.values() if way.state]
    now = {name: await counted(filled, name) for name in tables}
    assert now["events"] == were["events"]
    assert now["reports"] == were["reports"]
    assert now["queue"] == before.days * (len(live) - 1)
    assert now["deliveries"] + now["queue"] == were["deliveries"] - before.days * len(lost)
    assert were["attempts"] - now["attempts"] == before.days * sum(way.counted for way in lost)


async def counted(database: Database, table: str) -> int:
    [(count,)] = await database.rows(f"SELECT count(*) FROM {table}")
    assert isinstance(count, int)
    return count


async def test_what_old_workers_held_is_given_back_as_interrupted(
    filled: Database, before: OldBranches
) -> None:
    await filled.upgrade()
    async with opened(filled) as store:
        held = await rows(store, sa.select(queue).where(queue.c.worker == DEAD_WORKER))
        assert {row.status for row in held} == {DeliveryStatus.DELIVERING}
        async with store.transaction() as transaction:
            await transaction.queue.remove_dead_workers(CLOCK.now())
        found = await page(store)
        for day in range(before.days):
            flying = found[str(before.id_of("in flight", day))]
            stopped = found[str(before.id_of("stopped in flight", day))]
            assert flying.status is DeliveryStatus.RETRYING
            assert (stopped.status, stopped.reason) == ("cancelled", "access_closed")
            async with store.snapshot() as transaction:
                made = await transaction.attempts.of_delivery(old.ACCOUNT, flying.id)
            outcomes = [each.outcome for each in made]
            assert outcomes == [Outcome.BLOCKED_DESTINATION, Outcome.INTERRUPTED]


async def test_history_of_a_deleted_endpoint_is_still_cleared_away(filled: Database) -> None:
    await filled.upgrade()
    async with opened(filled) as store:
        were = await row_counts(store)
        async with store.transaction() as transaction:
            assert await transaction.endpoints.purge_deleted(1_000)
        now = await row_counts(store)
    assert now["endpoints"] == were["endpoints"] - 1
    assert now["deliveries"] == were["deliveries"] - 2


async def whole(database: Database) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables; nothing of the old ones is left."""

    def dump(connection: sa.Connection) -> dict[str, list[tuple[Any, ...]]]:
        assert not [name for name in sa.inspect(connection).get_table_names() if "old_" in name]
        return {
            table.name: sorted(
                (tuple(row) for row in connection.execute(sa.select(table))), key=repr
            )
            for table in metadata.sorted_tables
        }

    return await database.do(dump)


async def test_steps_that_are_rolled_back_are_taken_again(
    filled: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In between no one may open the store."""
    monkeypatch.setattr(old_history, "ROWS_AT_ONCE", 3)
    await filled.migrate()
    steps = 0

    def broken(connection: sa.Connection) -> None:
        if upgrading.move_some(connection) is not None:
            raise LookupError

    while (found := await filled.found()).is_interrupted:
        with pytest.raises(schema.WrongSchema, match="interrupted; run 'cuepost migrate'"):
            found.require_usable()
        with pytest.raises(LookupError):
            await filled.do(broken)
        assert await filled.do(upgrading.move_some) is not None
        steps += 1

    found.require_usable()
    assert steps > 10 if filled.url.startswith("sqlite") else steps >= 4
    assert await filled.do(upgrading.move_some) is None


@pytest.mark.parametrize("step", [1, 4])
async def test_a_process_that_is_killed_loses_nothing_and_the_next_one_goes_on(
    filled: Database, before: OldBranches, step: int
) -> None:
    status, _ = await run_opener(filled, die_in_step=step)
    assert status == -signal.SIGKILL
    assert (await filled.found()).is_interrupted

    assert await run_opener(filled) == (0, "")

    counts = {name: len(found) for name, found in (await whole(filled)).items()}
    assert counts["events"] == before.days * (len(WAYS) + 1)
    assert counts["reports"] == counts["events"]
    assert counts["deliveries"] + counts["queue"] == before.days * (len(WAYS) - len(LEFT_BEHIND))


async def test_several_may_move_at_once(filled: Database, before: OldBranches) -> None:
    assert await asyncio.gather(*(run_opener(filled) for _ in range(3))) == [(0, "")] * 3
    counts = {name: len(found) for name, found in (await whole(filled)).items()}
    assert counts["events"] == before.days * (len(WAYS) + 1)


async def test_a_large_file_is_moved_in_steps(
    sqlite_database: Database, before: OldBranches, caplog: pytest.LogCaptureFixture
) -> None:
    await sqlite_database.do(lambda connection: upgrade_to("0006", connection))
    await sqlite_database.do(before.fill)
    await sqlite_database.do(multiply)
    were = {name: await counted(sqlite_database, name) for name in schema.TO_BE_MOVED}

    began = time.perf_counter()
    with caplog.at_level("INFO", "cuepost.store"):
        async with opened(sqlite_database) as store:
            took = time.perf_counter() - began
            now = await row_counts(store)

    moved = sum(were.values())
    sys.stdout.write(f"{moved} rows in {took:.2f} s: {moved / took:.0f} rows/s\n")
    steps = [each for each in caplog.messages if "event=history_moved" in each]
    assert len(steps) >= sum(count // old_history.ROWS_AT_ONCE for count in were.values())
    assert now["events"] == were["events"]
    assert now["reports"] == were["reports"]
    lost = before.days * len(LEFT_BEHIND)
    assert now["deliveries"] + now["queue"] == were["deliveries"] - lost


def multiply(connection: sa.Connection) -> None:
    """Copies of one delivery that was delivered, each with all that belongs to it."""
    connection.exec_driver_sql("CREATE TEMP TABLE places (n INTEGER PRIMARY KEY)")
    connection.exec_driver_sql(
        "INSERT INTO places WITH RECURSIVE place(n) AS (VALUES (1) UNION ALL "
        f"SELECT n + 1 FROM place WHERE n < {MANY}) SELECT n FROM place"
    )
    for table, key in (
        ("events", "id"),
        ("deliveries", "id"),
        ("attempts", "delivery_id"),
        ("reports", "report_id"),
    ):
        columns = [each["name"] for each in sa.inspect(connection).get_columns(table)]
        another = {key: f"CAST(substr({key}, 1, 9) || printf('%07d', n) AS BLOB)"}
        another["report_id"] = "report_id || n"
        values = ", ".join(another[name] if name == key else f'"{name}"' for name in columns)
        of_one = {
            "events": "rowid = 1",
            "deliveries": "final_status = 'delivered' AND budget = 1 AND attempt_count = 1",
            "attempts": "rowid = 1",
            "reports": "rowid = 1",
        }
        connection.exec_driver_sql(
            f"INSERT INTO {table} SELECT {values} FROM "
            f"(SELECT * FROM {table} WHERE {of_one[table]} LIMIT 1), places"
        )
