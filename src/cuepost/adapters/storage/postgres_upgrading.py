"""Migrates a PostgreSQL database to the newest schema. Imported only if that is needed.

Services may run on it at the same time, so a migration waits only briefly for a lock: while it
waits for a table, every later request for that table queues behind it.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cuepost.adapters.storage import upgrading
from cuepost.adapters.storage.postgres_connecting import connect
from cuepost.adapters.storage.postgres_session import DRIVER_ERRORS, translated
from cuepost.adapters.system_clock import SystemClock

T = TypeVar("T")
log = logging.getLogger("cuepost.store")

# An arbitrary constant that is the same in every process.
MIGRATION_LOCK = 0x6375_6571
_TAKE_TURN = f"SELECT pg_try_advisory_xact_lock({MIGRATION_LOCK})"
TURN_AGAIN_SECONDS = 0.1
# Less than the server's default deadlock_timeout of 1 s, so that the migration gives up first.
LOCK_TIMEOUT = "500ms"
LOCK_TRIES = 100
LOCK_AGAIN_SECONDS = 1.0
# Lock not available, deadlock.
_LOCKED = ("55P03", "40P01")


async def upgrade_postgres(url: str, *, with_downtime: bool) -> bool:
    """True if something had to be done. There is no time limit."""
    engine = create_async_engine(
        "postgresql+asyncpg://",
        async_creator=lambda: connect(url),
        hide_parameters=True,
        poolclass=sa.NullPool,
    )
    sa.event.listen(engine.sync_engine, "begin", _limit_waits)

    def upgrade(connection: sa.Connection) -> bool:
        is_needed = upgrading.needs_upgrade(connection, with_downtime=with_downtime)
        # Each migration has a transaction of its own.
        connection.rollback()
        if is_needed:
            upgrading.migrate(connection)
        return is_needed

    with translated():
        try:
            async with _turn(url):
                changed = await _retrying_locks(engine, upgrade)
                while progress := await _retrying_locks(engine, upgrading.move_some):
                    log.info("event=history_moved %s", progress)
                    changed = True
        except sa.exc.SQLAlchemyError as error:
            raise _driver_error(error) from error
    return changed


@asynccontextmanager
async def _turn(url: str) -> AsyncIterator[None]:
    """Allows one migration at a time; a second process waits until the first is done.

    The second polls instead of waiting inside a statement, because CREATE INDEX CONCURRENTLY waits
    for every running statement to end.
    """
    driver = await connect(url)
    try:
        while True:
            await driver.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            if await driver.fetchval(_TAKE_TURN):
                break
            await driver.execute("ROLLBACK")
            await SystemClock().wait(TURN_AGAIN_SECONDS)
        # This also releases the snapshot of the statement before.
        await driver.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        yield
    finally:
        await driver.close()


async def _retrying_locks(engine: AsyncEngine, work: Callable[[sa.Connection], T]) -> T:
    """Retries the work while other sessions hold locks on the tables."""
    tries = 0
    while True:
        try:
            async with engine.connect() as connection:
                done = await connection.run_sync(work)
                await connection.commit()
                return done
        except sa.exc.SQLAlchemyError as error:
            tries += 1
            sqlstate = getattr(_driver_error(error), "sqlstate", None)
            if sqlstate not in _LOCKED or tries == LOCK_TRIES:
                raise
        log.warning("event=waiting_for_locks tries=%d", tries)
        await SystemClock().wait(LOCK_AGAIN_SECONDS)


def _driver_error(error: Exception) -> BaseException:
    """SQLAlchemy wraps the driver's error twice, and later errors may hide it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, DRIVER_ERRORS):
        cause = cause.__cause__ or cause.__context__
    return cause or error


def _limit_waits(connection: sa.Connection) -> None:
    """Has no effect outside of a transaction, as for CREATE INDEX CONCURRENTLY."""
    connection.exec_driver_sql(f"SELECT set_config('lock_timeout', '{LOCK_TIMEOUT}', true)")
