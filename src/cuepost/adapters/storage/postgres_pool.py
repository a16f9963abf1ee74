"""Connections to PostgreSQL that stay open between transactions.

SQLAlchemy's pool needs several times as long to lend a connection as a small transaction takes.
Here a connection stays with SQLAlchemy and with its driver for as long as it lives.
"""

import asyncio
from dataclasses import dataclass
from functools import cache
from typing import Any

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage.postgres_session import Driver, translated
from cuepost.adapters.storage.tables import metadata
from cuepost.ports.store import StoreUnavailable

CONNECT_PATIENCE_SECONDS = 5
COMMAND_PATIENCE_SECONDS = 60
# None waits for ever for a lock. A process that hangs must not keep its own for much longer than a
# worker's lease lasts, or nobody could take over from it.
_SERVER_SETTINGS = {
    "application_name": "cuepost",
    "lock_timeout": "20s",
    "statement_timeout": f"{COMMAND_PATIENCE_SECONDS}s",
    "idle_in_transaction_session_timeout": "15s",
    # What runs all the time has one plan for all values, which looks up its few rows in indexes.
    # Left to itself the server would plan it again each time beside a long queue, and that takes
    # longer than running it. Other transactions undo this when they begin.
    "plan_cache_mode": "force_generic_plan",
    **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"), "off"),
}


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    connection: AsyncConnection
    driver: Driver

    @property
    def is_usable(self) -> bool:
        return not (
            self.driver.is_closed()
            or self.driver.is_in_transaction()
            or self.connection.invalidated
        )


class PostgresPool:
    """At most `most` connections at a time, of which `kept` stay open while nobody uses them."""

    def __init__(self, url: sa.URL, *, kept: int, most: int, patience_seconds: float) -> None:
        self.engine = create_async_engine(
            url,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",
            poolclass=sa.NullPool,
            connect_args={
                "timeout": CONNECT_PATIENCE_SECONDS,
                "command_timeout": COMMAND_PATIENCE_SECONDS,
                "server_settings": _SERVER_SETTINGS,
            },
        )
        self._kept = kept
        self._patience_seconds = patience_seconds
        self._places = asyncio.Semaphore(most)
        self._resting: list[Link] = []

    async def take(self) -> Link:
        """To be given back. It may be dead nevertheless, if nobody has told us so."""
        await self._take_place()
        try:
            while self._resting:
                link = self._resting.pop()
                if link.is_usable:
                    return link
                await to_the_end(_closed(link))
            return await self._opened()
        except BaseException:
            self._places.release()
            raise

    async def give_back(self, link: Link) -> None:
        try:
            if link.is_usable and len(self._resting) < self._kept:
                self._resting.append(link)
            else:
                await to_the_end(_closed(link))
        finally:
            self._places.release()

    async def close(self) -> None:
        while self._resting:
            await _closed(self._resting.pop())
        await self.engine.dispose()

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("no database connection became free in time") from error

    async def _opened(self) -> Link:
        with translated():
            connection = await self.engine.connect()
            try:
                raw = await connection.get_raw_connection()
            except BaseException:
                await to_the_end(connection.close())
                raise
        driver: Any = raw.driver_connection
        assert isinstance(driver, asyncpg.Connection)
        link = Link(connection, driver)
        try:
            with translated():
                await driver.prepare(_every_kind_of_array())
        except BaseException:
            driver.terminate()
            await to_the_end(_closed(link))
            raise
        return link


@cache
def _every_kind_of_array() -> str:
    """The driver asks the server about each when it meets it first, which takes milliseconds.

    So it meets all of them at once, before anybody waits for an answer on this connection.
    """
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    columns = (column for table in metadata.tables.values() for column in table.columns)
    kinds = sorted({column.type.compile(dialect) for column in columns})
    return "SELECT " + ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, start=1))


async def _closed(link: Link) -> None:
    if not link.is_usable:
        link.driver.terminate()
        await link.connection.invalidate()
    await link.connection.close()
