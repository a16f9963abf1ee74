"""Connections to PostgreSQL that stay open between transactions.

The driver's own pool resets a connection each time it is given back. That is a round trip to the
server, which takes as long as a small transaction.
"""

import asyncio
from contextlib import suppress

from cuepost.adapters.storage.columns import KINDS
from cuepost.adapters.storage.pooler import Pooler
from cuepost.adapters.storage.postgres_connecting import Driver, connect
from cuepost.adapters.storage.postgres_session import DRIVER_ERRORS, translated
from cuepost.ports.store import StoreUnavailable

COMMAND_TIMEOUT_SECONDS = 60
CLOSE_TIMEOUT_SECONDS = 5
# More than the number of different statements.
STATEMENTS_KEPT = 512
# No statement waits for a lock indefinitely. A process that hangs must not keep its locks for much
# longer than a worker's lease, or no other worker could take over its deliveries.
LOCK_TIMEOUT = "20s"
SERVER_SETTINGS = {
    "lock_timeout": LOCK_TIMEOUT,
    "statement_timeout": f"{COMMAND_TIMEOUT_SECONDS}s",
    "idle_in_transaction_session_timeout": "15s",
    # Statements of the hot path have one plan for all values, which looks up few rows in indexes.
    # By default, the server would plan them again each time while the queue is long, which takes
    # longer than running them. Other transactions reset these settings when they begin.
    "plan_cache_mode": "force_generic_plan",
    **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"), "off"),
}
_SET = "; ".join(f"SET {name} = '{value}'" for name, value in SERVER_SETTINGS.items())
# The driver asks the server about each array type at its first use, which takes milliseconds. So
# all of them are used once when the connection opens.
_EVERY_KIND_OF_ARRAY = "SELECT " + ", ".join(
    f"${place}::{kind}[]"
    for place, kind in enumerate(sorted({kind.postgres_type for kind in KINDS.values()}), start=1)
)


class PostgresPool:
    """At most `most` connections at a time. A connection that was idle for `idle_seconds` is closed
    when another one is given back; the last one stays open."""

    def __init__(
        self,
        url: str,
        *,
        most: int,
        idle_seconds: float,
        timeout_seconds: float,
        pooler: Pooler = Pooler.NONE,
        wanted_server: str = "read-write",
        command_seconds: float = COMMAND_TIMEOUT_SECONDS,
    ) -> None:
        self._url = url
        self._idle_seconds = idle_seconds
        self._timeout_seconds = timeout_seconds
        self._pooler = pooler
        self._wanted_server = wanted_server
        self._command_seconds = command_seconds
        self._places = asyncio.Semaphore(most)
        # With the time since which each is idle, longest first.
        self._idle: list[tuple[float, Driver]] = []

    async def take(self) -> Driver:
        """The caller gives it back. It may be dead if its end was not reported to this process."""
        # Without a timer if there is room, because this runs for every transaction.
        seconds = self._timeout_seconds if self._places.locked() else None
        try:
            async with asyncio.timeout(seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("no database connection became free in time") from error
        try:
            while self._idle:
                _, driver = self._idle.pop()
                if not driver.is_closed():
                    return driver
                driver.terminate()
            return await self._opened()
        except BaseException:
            self._places.release()
            raise

    def give_back(self, driver: Driver) -> None:
        """Never waits for the server, which may be gone."""
        self._places.release()
        if driver.is_closed() or driver.is_in_transaction():
            driver.terminate()
            return
        now = asyncio.get_running_loop().time()
        self._idle.append((now, driver))
        if self._idle[0][0] <= now - self._idle_seconds:
            _, oldest = self._idle.pop(0)
            oldest.terminate()

    def drop_idle(self) -> None:
        """After one of them was found dead: the others are likely to be dead too."""
        while self._idle:
            _, driver = self._idle.pop()
            driver.terminate()

    async def close(self) -> None:
        while self._idle:
            _, driver = self._idle.pop()
            with suppress(*DRIVER_ERRORS):
                await driver.close(timeout=CLOSE_TIMEOUT_SECONDS)

    async def _opened(self) -> Driver:
        at_start = SERVER_SETTINGS if self._pooler is Pooler.NONE else None
        with translated():
            driver = await connect(
                self._url,
                wanted_server=self._wanted_server,
                command_timeout=self._command_seconds,
                statement_cache_size=STATEMENTS_KEPT if self._pooler.keeps_statements else 0,
                max_cached_statement_lifetime=0,
                server_settings=at_start,
            )
            try:
                if self._pooler is Pooler.SESSION:
                    await driver.execute(_SET)
                # In one transaction, because the driver changes a setting temporarily.
                async with driver.transaction():
                    await driver.prepare(_EVERY_KIND_OF_ARRAY)
            except BaseException:
                driver.terminate()
                raise
        return driver
