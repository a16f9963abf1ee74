"""The store for many processes and machines: PostgreSQL through asyncpg.

SQLAlchemy runs in autocommit and this module opens the transactions itself, so that the hot path
can speak to the driver directly, with whole columns as arrays, inside the same transaction.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from cuepost.adapters.storage import partitions, schema
from cuepost.adapters.storage.completion import to_the_end
from cuepost.adapters.storage.outbox import NoHandover, Outbox, sending
from cuepost.adapters.storage.postgres_session import (
    DRIVER_ERRORS,
    Driver,
    PostgresSession,
    translated,
)
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.dispatch import Handover
from cuepost.ports.store import StoreUnavailable, Transaction

POOL_SIZE = 10
POOL_OVERFLOW = 10
POOL_PATIENCE_SECONDS = 10
CONNECT_PATIENCE_SECONDS = 5
COMMAND_PATIENCE_SECONDS = 60
ROLLBACK_PATIENCE_SECONDS = 5
# A process that hangs must not keep its locks for ever, and none waits for ever for a lock.
_SERVER_SETTINGS = {
    "application_name": "cuepost",
    "lock_timeout": "20s",
    "statement_timeout": f"{COMMAND_PATIENCE_SECONDS}s",
    "idle_in_transaction_session_timeout": "60s",
}
_CHANGE = "BEGIN ISOLATION LEVEL READ COMMITTED"
# People's questions are planned for the values they name: one plan for a status that nearly all
# deliveries have and for one that hardly any has would be wrong for one of the two.
_READ = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL plan_cache_mode = force_custom_plan"
)


class PostgresStore:
    has_one_writer = False

    def __init__(self, url: str) -> None:
        self.handover: Handover = NoHandover()
        self._url = sa.make_url(url).set(drivername="postgresql+asyncpg")
        self.driver_url = _driver_url(self._url)
        self._engine = create_async_engine(
            self._url,
            hide_parameters=True,
            isolation_level="AUTOCOMMIT",
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=POOL_PATIENCE_SECONDS,
            connect_args={
                "timeout": CONNECT_PATIENCE_SECONDS,
                "command_timeout": COMMAND_PATIENCE_SECONDS,
                "server_settings": _SERVER_SETTINGS,
            },
        )

    async def open(self, now: datetime) -> None:
        """Refuse a schema that is not this version's, and say what to do about it."""
        await self._require_current()
        await self.prepare_days(now)

    async def migrate(self, now: datetime) -> bool:
        """True when something had to be done. It may take as long as it takes."""
        engine = create_async_engine(self._url, hide_parameters=True, poolclass=sa.NullPool)
        with translated():
            async with engine.begin() as connection:
                changed = await connection.run_sync(schema.upgrade)
        await self.prepare_days(now)
        return changed

    async def close(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with sending(self.handover) as outbox, self._begin(_CHANGE, outbox) as session:
            yield RecordsTransaction(session, outbox)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        async with self._begin(_READ) as session:
            yield RecordsTransaction(session, Outbox(self.handover))

    async def check(self) -> None:
        try:
            await self._require_current()
        except schema.WrongSchema as error:
            raise StoreUnavailable(str(error)) from error

    async def prepare_days(self, now: datetime) -> None:
        names = [table.name for table in partitions.PARTITIONED]
        async with self._begin(_CHANGE) as session:
            with translated():
                await session.driver.execute("SELECT pg_advisory_xact_lock($1)", partitions.LOCK)
                rows = await session.driver.fetch(partitions.EXISTING, names)
                for statement in partitions.missing(frozenset(row[0] for row in rows), now):
                    await session.driver.execute(statement)

    async def _require_current(self) -> None:
        async with self._begin(_READ) as session:
            with translated():
                await session.connection.run_sync(schema.require_current)

    @asynccontextmanager
    async def _begin(
        self, how: str, outbox: Outbox | None = None
    ) -> AsyncIterator[PostgresSession]:
        with translated():
            connection = await self._engine.connect()
        try:
            driver = await _begun(connection, how)
            try:
                session = PostgresSession(connection, driver)
                yield session
                await to_the_end(_commit(session, outbox))
            except StoreUnavailable:
                # In whatever state the connection is, nobody else should get it.
                driver.terminate()
                raise
            finally:
                if driver.is_closed() or not await _is_rolled_back(driver):
                    await connection.invalidate()
        finally:
            await to_the_end(connection.close())


def _driver_url(url: sa.URL) -> str:
    """For the driver itself, which calls the option for TLS as everybody else does."""
    options = {"sslmode" if name == "ssl" else name: value for name, value in url.query.items()}
    return url.set(drivername="postgresql", query=options).render_as_string(False)


async def _begun(connection: AsyncConnection, how: str) -> Driver:
    """The pool may hold connections that died while nobody used them; those are passed over."""
    for _ in range(POOL_SIZE + POOL_OVERFLOW):
        with translated():
            driver = await _driver_of(connection)
        try:
            with translated():
                await to_the_end(driver.execute(how))
        except StoreUnavailable:
            driver.terminate()
            await connection.invalidate()
        except BaseException:
            await _is_rolled_back(driver)
            raise
        else:
            return driver
    raise StoreUnavailable("no database connection could be used")


async def _driver_of(connection: AsyncConnection) -> Driver:
    raw = await connection.get_raw_connection()
    driver: Any = raw.driver_connection
    assert isinstance(driver, asyncpg.Connection)
    return driver


async def _commit(session: PostgresSession, outbox: Outbox | None) -> None:
    await session.flush()
    with translated():
        answer = await session.driver.execute("COMMIT")
    # The server answers "ROLLBACK" when a statement before has failed and nobody said so.
    if answer != "COMMIT":
        raise StoreUnavailable("a statement failed, so nothing of the transaction was kept")
    # At once: the caller may have been cancelled meanwhile, and what is committed has to be sent.
    if outbox is not None:
        outbox.committed()


async def _is_rolled_back(driver: Driver) -> bool:
    """Leave no transaction open, even when the caller is cancelled; else the connection must go."""
    if not driver.is_in_transaction():
        return True
    try:
        await to_the_end(driver.execute("ROLLBACK", timeout=ROLLBACK_PATIENCE_SECONDS))
    except DRIVER_ERRORS:
        driver.terminate()
        return False
    return True
