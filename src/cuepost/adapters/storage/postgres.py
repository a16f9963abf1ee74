"""The store for many processes and machines: PostgreSQL through asyncpg."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import datetime
from typing import TypeVar

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage import partitions, schema
from cuepost.adapters.storage.outbox import NoHandover, Outbox, sending
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_pool import PostgresPool
from cuepost.adapters.storage.postgres_session import (
    DRIVER_ERRORS,
    PostgresSession,
    translated,
)
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.dispatch import Handover
from cuepost.ports.store import (
    Action,
    CommitUnknown,
    ConnectionDied,
    Priority,
    StoreUnavailable,
    Transaction,
)

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
_IS_READ_ONLY = "SELECT current_setting('transaction_read_only')::boolean OR pg_is_in_recovery()"
# With an id of its own the commit is written to the server's log. Anybody may ask whether a process
# is ready, so that is done once in a while.
_CANNOT_WRITE = f"{_IS_READ_ONLY} OR pg_current_xact_id() IS NULL"
WRITE_PROBE_SECONDS = 1.0


class PostgresStore:
    def __init__(self, url: str, *, keeps_time: bool = False) -> None:
        """With `keeps_time` workers go by the server's clock; tests have a clock of their own."""
        self.handover: Handover = NoHandover()
        self.url = url
        self._keeps_time = keeps_time
        self._next_write_probe = 0.0
        self._pool = PostgresPool(
            url,
            kept=POOL_SIZE,
            most=POOL_SIZE + POOL_OVERFLOW,
            patience_seconds=POOL_PATIENCE_SECONDS,
        )

    async def open(self, now: datetime) -> None:
        """Refuse a schema that this version cannot run on, and say what to do about it."""
        await self._require_usable()
        await self.prepare_days(now)

    async def migrate(self, now: datetime, *, with_downtime: bool = False) -> bool:
        """True when something had to be done. It may take as long as it takes.

        Without `with_downtime` a step is refused on which the version before could not run.
        """
        # Loaded here, because a start hardly ever needs it.
        from cuepost.adapters.storage.postgres_upgrading import (  # noqa: PLC0415  # see above
            upgrade_postgres,
        )

        changed = await upgrade_postgres(self.url, with_downtime=with_downtime)
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
    async def single_read(self) -> AsyncIterator[Transaction]:
        """Without telling the server where it begins and ends: that takes longer than asking."""
        async with self._using(await self._pool.take()) as session:
            try:
                yield RecordsTransaction(session, Outbox(self.handover))
            except StoreUnavailable as error:
                if session.driver.is_closed():
                    raise ConnectionDied(str(error)) from error
                raise

    async def check(self) -> None:
        now = asyncio.get_running_loop().time()
        probe = _CANNOT_WRITE if now >= self._next_write_probe else _IS_READ_ONLY
        async with self._begin(_HOT_WRITE) as session:
            with translated():
                found = await schema.found_on_postgres(session.driver)
                is_read_only = await session.driver.fetchval(probe)
        try:
            found.require_usable()
        except schema.WrongSchema as error:
            raise StoreUnavailable(str(error)) from error
        if is_read_only:
            raise StoreUnavailable("the database is read-only")
        if probe is _CANNOT_WRITE:
            self._next_write_probe = now + WRITE_PROBE_SECONDS

    async def prepare_days(self, now: datetime) -> None:
        async with self._begin(_WRITE) as session:
            with translated():
                await session.driver.execute("SELECT pg_advisory_xact_lock($1)", partitions.LOCK)
                rows = await session.driver.fetch(partitions.EXISTING, partitions.PARTITIONED)
                for statement in partitions.missing(frozenset(row[0] for row in rows), now):
                    await session.driver.execute(statement)

    async def _require_usable(self) -> None:
        async with self._begin(_READ) as session:
            with translated():
                found = await schema.found_on_postgres(session.driver)
        found.require_usable()

    @asynccontextmanager
    async def _begin(
        self, how: str, outbox: Outbox | None = None
    ) -> AsyncIterator[PostgresSession]:
        async with self._using(await self._begun(how)) as session:
            yield session
            await to_the_end(_commit(session, outbox))

    @asynccontextmanager
    async def _using(self, driver: Driver) -> AsyncIterator[PostgresSession]:
        try:
            yield PostgresSession(driver, keeps_time=self._keeps_time)
        except StoreUnavailable:
            # In whatever state the connection is, nobody else should get it.
            driver.terminate()
            raise
        finally:
            await self._tidied(driver)

    async def _begun(self, how: str) -> Driver:
        """The pool may hold connections that died while nobody used them; those are passed over."""
        for _ in range(POOL_SIZE + POOL_OVERFLOW):
            driver = await self._pool.take()
            try:
                with translated():
                    await driver.execute(how)
            except BaseException as error:
                # Whether it has begun there nobody knows.
                driver.terminate()
                await self._pool.give_back(driver)
                if not isinstance(error, StoreUnavailable):
                    raise
            else:
                return driver
        raise StoreUnavailable("no database connection could be used")

    async def _tidied(self, driver: Driver) -> None:
        """Leave no transaction open, even when the caller is cancelled."""
        try:
            if not driver.is_closed() and driver.is_in_transaction():
                rollback = driver.execute("ROLLBACK", timeout=ROLLBACK_PATIENCE_SECONDS)
                await to_the_end(rollback)
        except DRIVER_ERRORS:
            driver.terminate()
        finally:
            await self._pool.give_back(driver)


async def _commit(session: PostgresSession, outbox: Outbox | None) -> None:
    await session.flush()
    try:
        with translated():
            answer = await session.driver.execute("COMMIT")
    except StoreUnavailable as error:
        raise CommitUnknown(str(error)) from error
    # The server answers "ROLLBACK" when a statement before has failed and nobody said so.
    if answer != "COMMIT":
        raise StoreUnavailable("a statement failed, so nothing of the transaction was kept")
    # At once: the caller may have been cancelled meanwhile, and what is committed has to be sent.
    if outbox is not None:
        outbox.committed()
