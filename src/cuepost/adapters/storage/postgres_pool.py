"""Connections to PostgreSQL that stay open between transactions.

The driver's own pool resets a connection each time that it is given back, which takes a trip to the
server: as long as a small transaction.
"""

import asyncio
from contextlib import suppress

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage.columns import KINDS
from cuepost.adapters.storage.postgres_connecting import Driver, connect
from cuepost.adapters.storage.postgres_session import DRIVER_ERRORS, translated
from cuepost.ports.store import StoreUnavailable

COMMAND_PATIENCE_SECONDS = 60
CLOSE_PATIENCE_SECONDS = 5
# More than there are different statements.
STATEMENTS_KEPT = 512
# None waits for ever for a lock. A process that hangs must not keep its own for much longer than a
# worker's lease lasts, or nobody could take over from it.
_SERVER_SETTINGS = {
    "lock_timeout": "20s",
    "statement_timeout": f"{COMMAND_PATIENCE_SECONDS}s",
    "idle_in_transaction_session_timeout": "15s",
    # What runs all the time has one plan for all values, which looks up its few rows in indexes.
    # Left to itself the server would plan it again each time beside a long queue, and that takes
    # longer than running it. Other transactions undo this when they begin.
    "plan_cache_mode": "force_generic_plan",
    **dict.fromkeys(("enable_seqscan", "enable_hashjoin", "enable_mergejoin", "jit"), "off"),
}
# The driver asks the server about each kind of array when it meets it first, which takes
# milliseconds. So it meets all of them before anybody waits for an answer on the connection.
_EVERY_KIND_OF_ARRAY = "SELECT " + ", ".join(
    f"${place}::{kind}[]"
    for place, kind in enumerate(sorted({kind.postgres_type for kind in KINDS.values()}), start=1)
)


class PostgresPool:
    """At most `most` connections at a time, of which `kept` stay open while nobody uses them."""

    def __init__(self, url: str, *, kept: int, most: int, patience_seconds: float) -> None:
        self._url = url
        self._kept = kept
        self._patience_seconds = patience_seconds
        self._places = asyncio.Semaphore(most)
        self._resting: list[Driver] = []

    async def take(self) -> Driver:
        """To be given back. It may be dead nevertheless, if nobody has told us so."""
        await self._take_place()
        try:
            while self._resting:
                driver = self._resting.pop()
                if _is_usable(driver):
                    return driver
                await to_the_end(_closed(driver))
            return await self._opened()
        except BaseException:
            self._places.release()
            raise

    async def give_back(self, driver: Driver) -> None:
        try:
            if _is_usable(driver) and len(self._resting) < self._kept:
                self._resting.append(driver)
            else:
                await to_the_end(_closed(driver))
        finally:
            self._places.release()

    async def close(self) -> None:
        while self._resting:
            await _closed(self._resting.pop())

    async def _take_place(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        try:
            async with asyncio.timeout(self._patience_seconds):
                await self._places.acquire()
        except TimeoutError as error:
            raise StoreUnavailable("no database connection became free in time") from error

    async def _opened(self) -> Driver:
        with translated():
            driver = await connect(
                self._url,
                command_timeout=COMMAND_PATIENCE_SECONDS,
                statement_cache_size=STATEMENTS_KEPT,
                max_cached_statement_lifetime=0,
                server_settings=_SERVER_SETTINGS,
            )
            try:
                await driver.prepare(_EVERY_KIND_OF_ARRAY)
            except BaseException:
                driver.terminate()
                raise
        return driver


def _is_usable(driver: Driver) -> bool:
    return not (driver.is_closed() or driver.is_in_transaction())


async def _closed(driver: Driver) -> None:
    if _is_usable(driver):
        with suppress(*DRIVER_ERRORS):
            await driver.close(timeout=CLOSE_PATIENCE_SECONDS)
    else:
        driver.terminate()
