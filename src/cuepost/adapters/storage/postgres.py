"""The store for many processes and machines: PostgreSQL through asyncpg."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import datetime
from typing import Any, NamedTuple, TypeVar

from cuepost.adapters.storage import partitions, schema
from cuepost.adapters.storage.outbox import NoHandover, Outbox
from cuepost.adapters.storage.pooler import Pooler
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_pool import (
    CLOSE_TIMEOUT_SECONDS,
    COMMAND_TIMEOUT_SECONDS,
    SERVER_SETTINGS,
    PostgresPool,
)
from cuepost.adapters.storage.postgres_probes import require_fitting
from cuepost.adapters.storage.postgres_readiness import Readiness
from cuepost.adapters.storage.postgres_session import (
    DRIVER_ERRORS,
    PostgresSession,
    translated,
)
from cuepost.adapters.storage.postgres_transaction import PostgresTransaction
from cuepost.ports.dispatch import Handover
from cuepost.ports.saving import committing
from cuepost.ports.store import (
    Action,
    CommitUnknown,
    ConnectionDied,
    Priority,
    StoreUnavailable,
    Transaction,
)

T = TypeVar("T")

CONNECTIONS = 20
IDLE_SECONDS = 300
POOL_TIMEOUT_SECONDS = 10
ROLLBACK_TIMEOUT_SECONDS = 5
# BEGIN waits for no lock, so a connection that takes longer is dead.
BEGIN_TIMEOUT_SECONDS = 10


class _Begin(NamedTuple):
    """How a transaction begins; `changed` are settings for this transaction only."""

    level: str
    changed: str = ""


_ANY_PLAN = "".join(
    f"; SET LOCAL {name} = on" for name in ("enable_seqscan", "enable_hashjoin", "enable_mergejoin")
)
_HOT_WRITE = _Begin("READ COMMITTED")
_WRITE = _Begin("READ COMMITTED", f"{_ANY_PLAN}; SET LOCAL plan_cache_mode = auto")
# Queries of people are planned for their actual values: one plan for a status that nearly all
# deliveries have and for a rare one would be wrong for one of the two.
_READ = _Begin(
    "REPEATABLE READ READ ONLY", f"{_ANY_PLAN}; SET LOCAL plan_cache_mode = force_custom_plan"
)
# Settings for each transaction, behind a pooler that keeps no session state.
_EVERY_TIME = "".join(f"; SET LOCAL {name} = '{value}'" for name, value in SERVER_SETTINGS.items())


class PostgresStore:
    def __init__(
        self,
        url: str,
        *,
        direct_url: str | None = None,
        pooler: Pooler = Pooler.NONE,
        connections: int = CONNECTIONS,
        idle_seconds: float = IDLE_SECONDS,
        uses_server_clock: bool = False,
        wanted_server: str = "read-write",
        timeout_seconds: float = POOL_TIMEOUT_SECONDS,
        command_seconds: float = COMMAND_TIMEOUT_SECONDS,
    ) -> None:
        """With `uses_server_clock`, workers use the server's clock; tests have their own clock.

        `direct_url` bypasses the pooler. `wanted_server` selects one of several hosts.
        """
        self.handover: Handover = NoHandover()
        self.direct_url = direct_url or url
        self.url = url
        self._pooler = pooler
        self._set_each_time = _EVERY_TIME if pooler.is_by_transaction else ""
        self._keeps_time = uses_server_clock
        self._readiness = Readiness(self._asked)
        # Commits and rollbacks, which go on after their caller was cancelled.
        self._endings: set[asyncio.Future[None]] = set()
        self._connections = connections
        self._pool = PostgresPool(
            url,
            most=connections,
            idle_seconds=idle_seconds,
            timeout_seconds=timeout_seconds,
            pooler=pooler,
            wanted_server=wanted_server,
            command_seconds=command_seconds,
        )

    async def open(self, now: datetime) -> None:
        """Refuses a wrong pooler setting or schema, with a message that says what to do."""
        await require_fitting(self.url, self._pooler)
        await self._require_usable()
        await self.prepare_days(now)

    async def migrate(self, now: datetime, *, with_downtime: bool = False) -> bool:
        """True if something had to be done. There is no time limit.

        Without `with_downtime`, a migration is refused if the version before could not run on it.
        """
        # Imported here, because a start rarely needs it.
        from cuepost.adapters.storage.postgres_upgrading import (  # noqa: PLC0415  # see above
            upgrade_postgres,
        )

        changed = await upgrade_postgres(self.direct_url, with_downtime=with_downtime)
        await self.prepare_days(now)
        return changed

    async def close(self) -> None:
        if self._endings:
            await asyncio.wait(self._endings, timeout=CLOSE_TIMEOUT_SECONDS)
        await self._pool.close()

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        return self._begin(_WRITE, saves=True)

    async def write(self, action: Action[T], priority: Priority) -> T:
        """The priority is ignored: transactions run concurrently on the server."""
        async with self._begin(_HOT_WRITE, saves=True) as transaction:
            return await action(transaction)

    def snapshot(self) -> AbstractAsyncContextManager[PostgresTransaction]:
        return self._begin(_READ)

    @asynccontextmanager
    async def single_read(self) -> AsyncIterator[Transaction]:
        """Without BEGIN and COMMIT, which would take longer than the query."""
        if self._pooler.is_by_transaction:
            async with self.snapshot() as transaction:
                yield transaction
            return
        driver = await self._pool.take()
        session = self._session(driver)
        try:
            yield PostgresTransaction(session)
        except BaseException as error:
            died = isinstance(error, StoreUnavailable) and driver.is_closed()
            await self._shielded(self._abandoned(driver, error))
            if died:
                raise ConnectionDied(str(error)) from error
            raise
        else:
            self._pool.give_back(driver)

    async def check(self) -> None:
        await self._readiness.check()

    async def _asked(self, question: Callable[[Driver], Awaitable[None]]) -> None:
        async with self._begin(_HOT_WRITE) as transaction:
            await question(transaction.session.driver)

    async def prepare_days(self, now: datetime) -> None:
        async with self._begin(_WRITE) as transaction:
            driver = transaction.session.driver
            with translated():
                await driver.execute("SELECT pg_advisory_xact_lock($1)", partitions.LOCK)
                rows = await driver.fetch(partitions.EXISTING, partitions.PARTITIONED)
                for statement in partitions.missing(frozenset(row[0] for row in rows), now):
                    await driver.execute(statement)

    async def _require_usable(self) -> None:
        async with self.snapshot() as transaction:
            with translated():
                found = await schema.found_on_postgres(transaction.session.driver)
        found.require_usable()

    @asynccontextmanager
    async def _begin(
        self, how: _Begin, *, saves: bool = False
    ) -> AsyncIterator[PostgresTransaction]:
        """With `saves`, the commit counts for the request that it is part of."""
        driver = await self._begun(how)
        session = self._session(driver)
        try:
            yield PostgresTransaction(session)
            await session.flush()
        except BaseException as error:
            session.outbox.rolled_back()
            await self._shielded(self._abandoned(driver, error))
            raise
        with committing() if saves else nullcontext():
            await self._shielded(self._committed(driver, session.outbox))

    def _session(self, driver: Driver) -> PostgresSession:
        return PostgresSession(driver, Outbox(self.handover), uses_server_clock=self._keeps_time)

    async def _abandoned(self, driver: Driver, error: BaseException) -> None:
        """Returns the connection to the pool with no transaction open."""
        try:
            if isinstance(error, StoreUnavailable):
                # The state of the connection is unknown, so it must not be reused.
                driver.terminate()
            elif not driver.is_closed() and driver.is_in_transaction():
                await driver.execute("ROLLBACK", timeout=ROLLBACK_TIMEOUT_SECONDS)
        except DRIVER_ERRORS:
            driver.terminate()
        finally:
            self._pool.give_back(driver)

    async def _committed(self, driver: Driver, outbox: Outbox) -> None:
        try:
            await _commit(driver)
            # Here and not in the caller, which may be cancelled: committed deliveries must be sent.
            outbox.committed()
        except BaseException as error:
            outbox.rolled_back()
            await self._abandoned(driver, error)
            raise
        self._pool.give_back(driver)

    async def _shielded(self, work: Coroutine[Any, Any, None]) -> None:
        """A cancelled caller returns at once; the work goes on and gives its connection back.

        A COMMIT is never cancelled at the server: if it waits for a standby, cancelling would
        commit it without waiting for the standby.
        """
        ending = asyncio.ensure_future(work)  # noqa: TID251  # `close` waits for it
        self._endings.add(ending)
        ending.add_done_callback(self._ended)
        await asyncio.shield(ending)

    def _ended(self, ending: asyncio.Future[None]) -> None:
        self._endings.discard(ending)
        if not ending.cancelled():
            # Marks it as retrieved; the caller got it from the shield.
            ending.exception()

    async def _begun(self, how: _Begin) -> Driver:
        """Skips connections of the pool that died while they were idle."""
        for _ in range(self._connections):
            driver = await self._pool.take()
            try:
                with translated():
                    begin = f"BEGIN ISOLATION LEVEL {how.level}{self._set_each_time}{how.changed}"
                    await driver.execute(begin, timeout=BEGIN_TIMEOUT_SECONDS)
            except BaseException as error:
                # It is unknown whether the server has begun the transaction.
                driver.terminate()
                self._pool.give_back(driver)
                if not isinstance(error, StoreUnavailable):
                    raise
                self._pool.drop_idle()
            else:
                return driver
        raise StoreUnavailable("no database connection could be used")


async def _commit(driver: Driver) -> None:
    try:
        with translated():
            answer = await driver.execute("COMMIT")
    except StoreUnavailable as error:
        raise CommitUnknown(str(error), error.sqlstate) from error
    # The server answers "ROLLBACK" when an earlier statement failed and its error was swallowed.
    if answer != "COMMIT":
        raise StoreUnavailable("a statement failed, so nothing of the transaction was kept")
