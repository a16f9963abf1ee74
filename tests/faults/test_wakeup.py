"""Word of work between processes, over connections that the server may end at any time."""

import asyncio
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuepost.adapters.storage.postgres_wakeup import (
    APPLICATION_NAME,
    DELIVERIES_AT_ONCE,
    PostgresWakeup,
)
from cuepost.adapters.system_clock import SystemClock
from cuepost.ports.dispatch import DeliveryKey, Lane

PATIENCE_SECONDS = 20.0
ENDED = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = $1
"""
ONE, TWO = 1, 2


class Ear:
    """What one process hears; nothing means that workers changed, or that it listens again."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[frozenset[object]] = asyncio.Queue()

    def work_for(self, lanes: Collection[Lane]) -> None:
        self._heard.put_nowait(frozenset(lanes))

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        self._heard.put_nowait(frozenset((worker, *key) for key in keys))

    def workers_changed(self) -> None:
        self._heard.put_nowait(frozenset())

    async def next(self) -> frozenset[object]:
        return await asyncio.wait_for(self._heard.get(), PATIENCE_SECONDS)


@asynccontextmanager
async def talking(url: str) -> AsyncIterator[tuple[PostgresWakeup, Ear]]:
    wakeup, ear = PostgresWakeup(url, SystemClock()), Ear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(wakeup.run(ear))
        assert await ear.next() == frozenset()
        yield wakeup, ear
        task.cancel()


async def end_connections(url: str) -> None:
    connection = await asyncpg.connect(url, timeout=PATIENCE_SECONDS)
    try:
        await connection.execute(ENDED, APPLICATION_NAME, timeout=PATIENCE_SECONDS)
    finally:
        await connection.close()


async def test_everybody_hears_of_work(postgres_database: str) -> None:
    async with (
        talking(postgres_database) as (speaker, own_ear),
        talking(postgres_database) as (_, ear),
    ):
        speaker.work_for([ONE, TWO])

        assert await ear.next() == {ONE, TWO}
        assert await own_ear.next() == {ONE, TWO}


async def test_a_lane_that_is_announced_again_while_it_is_sent_is_sent_again(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker that got the first wake-up may have looked before the newer work was there."""
    async with talking(postgres_database) as (speaker, ear):
        execute, repeats = asyncpg.Connection.execute, [ONE]

        async def announcing_again(connection: Any, query: str, *values: Any, **more: Any) -> str:
            if "pg_notify" in query and repeats:
                speaker.work_for([repeats.pop()])
            return await execute(connection, query, *values, **more)

        monkeypatch.setattr(asyncpg.Connection, "execute", announcing_again)
        speaker.work_for([ONE])
        assert [await ear.next(), await ear.next()] == [{ONE}, {ONE}]


async def test_a_worker_hears_what_was_booked_for_it(postgres_database: str) -> None:
    worker, keys = uuid4(), {(number, uuid4()) for number in range(2 * DELIVERIES_AT_ONCE)}
    async with (
        talking(postgres_database) as (speaker, _),
        talking(postgres_database) as (_, ear),
    ):
        speaker.hand_over(worker, list(keys))
        heard = [await ear.next(), await ear.next()]

    assert heard[0] | heard[1] == {(worker, *key) for key in keys}
    assert len(heard[0]) == DELIVERIES_AT_ONCE


async def test_who_only_speaks_hears_nothing_and_is_heard(postgres_database: str) -> None:
    wakeup = PostgresWakeup(postgres_database, SystemClock())
    async with talking(postgres_database) as (_, ear), asyncio.TaskGroup() as group:
        task = group.create_task(wakeup.run(None))
        wakeup.work_for([ONE])
        assert await ear.next() == {ONE}
        assert wakeup.is_connected
        task.cancel()


async def test_who_only_listens_notices_the_end_and_listens_again(postgres_database: str) -> None:
    async with talking(postgres_database) as (_, ear):
        await end_connections(postgres_database)
        assert await ear.next() == frozenset()

        async with talking(postgres_database) as (speaker, _):
            speaker.work_for([ONE])
            assert await ear.next() == {ONE}


async def test_what_is_announced_without_a_connection_is_said_later(postgres_database: str) -> None:
    async with talking(postgres_database) as (speaker, ear):
        await end_connections(postgres_database)
        speaker.work_for([TWO])

        while (heard := await ear.next()) == frozenset():
            pass
        assert heard == {TWO}


async def test_a_driver_that_has_lost_its_way_costs_a_connection_and_no_more(
    postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it does when a connection is being ended while something is said on it."""
    execute = asyncpg.Connection.execute
    failures = [asyncpg.InternalClientError("cannot switch to state 12")]

    async def failing_once(connection: Any, query: str, *values: Any, **more: Any) -> str:
        if "pg_notify" in query and failures:
            raise failures.pop()
        return await execute(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "execute", failing_once)
    async with talking(postgres_database) as (wakeup, ear):
        wakeup.work_for([ONE])
        assert await ear.next() == frozenset()
        assert await ear.next() == {ONE}
    assert failures == []
