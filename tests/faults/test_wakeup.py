"""Word of work between processes, over connections that the server may end at any time."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_wakeup import APPLICATION_NAME, PostgresWakeup
from cuepost.adapters.system_clock import SystemClock
from cuepost.ports.dispatch import Lane

PATIENCE_SECONDS = 20.0
ENDED = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND application_name = $1
"""
ONE, TWO = 1, 2


class Ear:
    """What one process hears; an empty announcement means that it listens anew."""

    def __init__(self) -> None:
        self._heard: asyncio.Queue[frozenset[Lane]] = asyncio.Queue()

    def hear(self, lanes: Collection[Lane]) -> None:
        self._heard.put_nowait(frozenset(lanes))

    async def next(self) -> frozenset[Lane]:
        return await asyncio.wait_for(self._heard.get(), PATIENCE_SECONDS)


@asynccontextmanager
async def talking(url: str) -> AsyncIterator[tuple[PostgresWakeup, Ear]]:
    wakeup, ear = PostgresWakeup(url, SystemClock()), Ear()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(wakeup.run(ear.hear))
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
        speaker.announce([ONE, TWO])

        assert await ear.next() == {ONE, TWO}
        assert await own_ear.next() == {ONE, TWO}


async def test_who_only_listens_notices_the_end_and_listens_again(postgres_database: str) -> None:
    async with talking(postgres_database) as (_, ear):
        await end_connections(postgres_database)
        assert await ear.next() == frozenset()

        async with talking(postgres_database) as (speaker, _):
            speaker.announce([ONE])
            assert await ear.next() == {ONE}


async def test_what_is_announced_without_a_connection_is_said_later(postgres_database: str) -> None:
    async with talking(postgres_database) as (speaker, ear):
        await end_connections(postgres_database)
        speaker.announce([TWO])

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
        wakeup.announce([ONE])
        assert await ear.next() == frozenset()
        assert await ear.next() == {ONE}
    assert failures == []


def test_the_driver_is_asked_for_tls_by_its_own_name_of_the_option() -> None:
    store = PostgresStore("postgresql://user:word@db.example.com/cuepost?ssl=verify-full")

    assert store.driver_url == ("postgresql://user:word@db.example.com/cuepost?sslmode=verify-full")
