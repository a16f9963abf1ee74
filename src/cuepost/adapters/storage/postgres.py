"""The store for many processes and machines: PostgreSQL through asyncpg.

SQLAlchemy runs in autocommit and this module opens the transactions itself, so that the hot path
can speak to the driver directly, with whole columns as arrays, inside the same transaction.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import TypeVar

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage import partitions, schema
from cuepost.adapters.storage.outbox import NoHandover, Outbox, sending
from cuepost.adapters.storage.postgres_pool import Link, PostgresPool
from cuepost.adapters.storage.postgres_session import DRIVER_ERRORS, PostgresSession, translated
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.dispatch import Handover
from cuepost.ports.store import Action, ConnectionDied, Priority, StoreUnavailable, Transaction

log = logging.getLogger("cuepost.store")

T = TypeVar("T")

POOL_SIZE = 10
POOL_OVERFLOW = 10
POOL_PATIENCE_SECONDS = 10
ROLLBACK_PATIENCE_SECONDS = 5
_HOT_WRITE = "BEGIN ISOLATION LEVEL READ COMMITTED"
_ANY_PLAN = "".join(
    f"; SET LOCAL {name} = on" for name in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
)
_WRITE = f"{_HOT_WRITE}{_ANY_PLAN}; SET LOCAL plan_cache_mode = auto"
# People's questions are planned for the values they name: one plan for a status that nearly all
# deliveries have and for one that hardly any has would be wrong for one of the two.
_READ = (
    f"BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY{_ANY_PLAN}"
    "; SET LOCAL plan_cache_mode = force_custom_plan"
)


async def _step(engine: AsyncEngine) -> str | None:
    async with engine.begin() as connection:
        return await connection.run_sync(schema.move_some)


class PostgresStore:
    def __init__(self, url: str) -> None:
        self.handover: Handover = NoHandover()
        self._url = sa.make_url(url).set(drivername="postgresql+asyncpg")
        self.driver_url = _driver_url(self._url)
        self._pool = PostgresPool(
            self._url,
            kept=POOL_SIZE,
            most=POOL_SIZE + POOL_OVERFLOW,
            patience_seconds=POOL_PATIENCE_SECONDS,
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
            while told := await _step(engine):
                log.info("event=history_moved %s", told)
                changed = True
        await self.prepare_days(now)
        return changed

    async def close(self) -> None:
        await self._pool.close()

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._transaction(_WRITE)

    async def write(self, action: Action[T], priority: Priority) -> T:
        """The server has no priorities: transactions run beside each other."""
        async with self._transaction(_HOT_WRITE) as transaction:
            return await action(transaction)

    @asynccontextmanager
    async def _transaction(self, begin: str) -> AsyncIterator[Transaction]:
        async with sending(self.handover) as outbox, self._begin(begin, outbox) as session:
            yield RecordsTransaction(session, outbox)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        async with self._begin(_READ) as session:
            yield RecordsTransaction(session, Outbox(self.handover))

    @asynccontextmanager
    async def glance(self) -> AsyncIterator[Transaction]:
        """Without telling the server where it begins and ends: that takes longer than asking."""
        async with self._using(await self._pool.take()) as session:
            try:
                yield RecordsTransaction(session, Outbox(self.handover))
            except StoreUnavailable as error:
                if session.driver.is_closed():
                    raise ConnectionDied(str(error)) from error
                raise

    async def check(self) -> None:
        try:
            await self._require_current()
        except schema.WrongSchema as error:
            raise StoreUnavailable(str(error)) from error

    async def prepare_days(self, now: datetime) -> None:
        names = [table.name for table in partitions.PARTITIONED]
        async with self._begin(_WRITE) as session:
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
        async with self._using(await self._begun(how)) as session:
            yield session
            await to_the_end(_commit(session, outbox))

    @asynccontextmanager
    async def _using(self, link: Link) -> AsyncIterator[PostgresSession]:
        try:
            yield PostgresSession(link.connection, link.driver)
        except StoreUnavailable:
            # In whatever state the connection is, nobody else should get it.
            link.driver.terminate()
            raise
        finally:
            await self._tidied(link)

    async def _begun(self, how: str) -> Link:
        """The pool may hold connections that died while nobody used them; those are passed over."""
        for _ in range(POOL_SIZE + POOL_OVERFLOW):
            link = await self._pool.take()
            try:
                with translated():
                    await link.driver.execute(how)
            except BaseException as error:
                # Whether it has begun there nobody knows.
                link.driver.terminate()
                await self._pool.give_back(link)
                if not isinstance(error, StoreUnavailable):
                    raise
            else:
                return link
        raise StoreUnavailable("no database connection could be used")

    async def _tidied(self, link: Link) -> None:
        """Leave no transaction open, even when the caller is cancelled."""
        try:
            if not link.driver.is_closed() and link.driver.is_in_transaction():
                rollback = link.driver.execute("ROLLBACK", timeout=ROLLBACK_PATIENCE_SECONDS)
                await to_the_end(rollback)
        except DRIVER_ERRORS:
            link.driver.terminate()
        finally:
            await self._pool.give_back(link)


def _driver_url(url: sa.URL) -> str:
    """For the driver itself, which calls the option for TLS as everybody else does."""
    options = {"sslmode" if name == "ssl" else name: value for name, value in url.query.items()}
    return url.set(drivername="postgresql", query=options).render_as_string(False)


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
