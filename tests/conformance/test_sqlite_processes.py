"""Several processes on one SQLite file: one writes at a time, and none takes another down."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.sqlite import SqliteStore
from tests.conformance.sqlite_writer import MARKER, TURNS, WatchedLock, take_turn
from tests.support.store_rows import rows, run

LIMIT = 30
MODULE = "tests.conformance.sqlite_writer"
Process = asyncio.subprocess.Process


@pytest.fixture
async def path(sqlite_store: SqliteStore) -> Path:
    await run(sqlite_store, sa.text(TURNS))
    return sqlite_store._path


@asynccontextmanager
async def writer(path: Path, name: str, times: int) -> AsyncIterator[Process]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", MODULE, str(path), name, str(times)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await asyncio.wait_for(process.communicate(), LIMIT)


async def line_of(process: Process) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), LIMIT)
    return line.decode().strip()


async def write(store: SqliteStore, name: str, times: int) -> None:
    for number in range(times):
        async with store.transaction() as transaction:
            await take_turn(transaction, name, number)


async def turns(store: SqliteStore) -> list[tuple[Any, ...]]:
    found = await rows(store, sa.text("SELECT * FROM turns ORDER BY begun"))
    return [tuple(row) for row in found]


async def assert_whole(store: SqliteStore) -> None:
    [row] = await rows(store, sa.text("PRAGMA integrity_check"))
    assert tuple(row) == ("ok",)


async def test_two_processes_and_this_one_write_at_once_and_nothing_is_lost(
    sqlite_store: SqliteStore, path: Path
) -> None:
    sqlite_store._machine_lock = WatchedLock(path.with_name(path.name + ".lock"))
    async with writer(path, "one", 60) as one, writer(path, "two", 60) as two:
        await line_of(one)
        await line_of(two)
        await asyncio.wait_for(write(sqlite_store, "this", 60), LIMIT)
        ended = [await asyncio.wait_for(each.communicate(), LIMIT) for each in (one, two)]

    assert [
        (each.returncode, error) for each, (_, error) in zip((one, two), ended, strict=True)
    ] == [
        (0, b""),
        (0, b""),
    ]
    taken = await turns(sqlite_store)
    assert sorted((name, number) for name, number, _, _ in taken) == [
        (name, number) for name in ("one", "this", "two") for number in range(60)
    ]
    for (_, _, _, ended_at), (_, _, begun_at, _) in pairwise(taken):
        assert ended_at < begun_at
    assert len({name for name, *_ in taken[60:120]}) > 1
    await assert_whole(sqlite_store)


async def test_a_process_that_is_killed_while_it_writes_holds_up_no_other(
    sqlite_store: SqliteStore, path: Path
) -> None:
    async with writer(path, "other", 0) as other:
        assert await line_of(other) == "inside"
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            waiting = group.create_task(write(sqlite_store, "this", 3))
            await asyncio.wait([waiting], timeout=0.05)
            assert not waiting.done()
            other.kill()

    assert [turn[:2] for turn in await turns(sqlite_store)] == [("this", n) for n in range(3)]
    await assert_whole(sqlite_store)


async def test_a_process_that_is_killed_at_any_moment_loses_nothing_that_it_had_committed(
    sqlite_store: SqliteStore, path: Path
) -> None:
    for number in range(5):
        async with writer(path, str(number), 100_000) as other:
            for _ in range(3 + 5 * number):
                said = await line_of(other)
            other.kill()
            assert other.stdout is not None
            rest = (await other.stdout.read()).decode().split()
            path.with_name(MARKER).unlink(missing_ok=True)
        acknowledged = int((said.split() + rest)[-1])

        await asyncio.wait_for(write(sqlite_store, f"this {number}", 1), LIMIT)
        stored = [turn[1] for turn in await turns(sqlite_store) if turn[0] == str(number)]
        assert stored in (list(range(acknowledged + 1)), list(range(acknowledged + 2)))
    await assert_whole(sqlite_store)


async def test_a_busy_process_lets_another_have_its_turn(
    sqlite_store: SqliteStore, path: Path
) -> None:
    async with writer(path, "other", 10) as other, asyncio.TaskGroup() as group:
        busy = [group.create_task(write(sqlite_store, f"busy {n}", 100_000)) for n in range(3)]
        await asyncio.wait_for(other.wait(), LIMIT)
        for task in busy:
            task.cancel()

    assert other.returncode == 0
    assert len([turn for turn in await turns(sqlite_store) if turn[0] == "other"]) == 10


async def test_a_process_that_closes_leaves_the_log_to_those_that_stay(
    sqlite_store: SqliteStore, path: Path
) -> None:
    await write(sqlite_store, "this", 1)
    async with writer(path, "other", 1) as other:
        await asyncio.wait_for(other.wait(), LIMIT)
    async with sqlite_store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == []
    await write(sqlite_store, "this", 1)
    assert len(await turns(sqlite_store)) == 3
    await assert_whole(sqlite_store)
