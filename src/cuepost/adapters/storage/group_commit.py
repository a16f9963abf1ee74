"""Changes that wait for the disk together.

One change at a time runs on the one writing connection. Who begins a transaction ends it too, but
lets those go first that wait for their turn by then: each of their changes is a savepoint in the
same transaction. So the more there is to write, the more is written by one commit. While a group
waits for the disk, the next one is under way.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage.machine_lock import MachineLock
from cuepost.adapters.storage.sqlite_log import SqliteLog
from cuepost.adapters.storage.sqlite_session import MANY_ROWS, translated
from cuepost.ports.store import Contention, Manner, StoreUnavailable

SAVEPOINT = "one_of_a_group"
# That many make a log of some tens of megabytes.
ROWS_IN_THE_LOG = 4_000


@dataclass(slots=True)
class _Group:
    """It counts as failed until it is written."""

    has_to_last: bool = False
    committed: list[Callable[[], None]] = field(default_factory=list)
    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = field(
        default_factory=lambda: Contention("a change that failed took others with it; try again")
    )

    async def wait(self) -> None:
        """Until everything in it is on the disk, or none of it, whoever is cancelled meanwhile."""
        cancelled: asyncio.CancelledError | None = None
        while not self.is_over.is_set():
            try:
                await self.is_over.wait()
            except asyncio.CancelledError as error:
                cancelled = error
        if cancelled is not None:
            raise cancelled
        if self.error is not None:
            raise self.error


class GroupCommit:
    def __init__(
        self,
        lock: MachineLock,
        threads: ThreadPoolExecutor,
        begin: Callable[[sqlite3.Connection], Awaitable[None]],
        log: SqliteLog,
    ) -> None:
        self._lock = lock
        self._log = log
        self.threads = threads
        self._begin = begin
        self._turn = asyncio.Lock()
        self._group: _Group | None = None
        self._rows_before = 0
        self._rows_in_the_log = 0

    @asynccontextmanager
    async def change(
        self,
        driver: sqlite3.Connection,
        manner: Manner = Manner.LASTING,
        committed: Callable[[], None] = lambda: None,
    ) -> AsyncIterator[None]:
        """When the block is left, the change is on the disk; after an exception it never was.

        Only whoever is cancelled at the end learns it from `committed` alone.

        A repeatable one causes no wait for the disk, but is not over before earlier ones are.
        """
        await self._turn.acquire()
        try:
            is_first = self._group is None
            group = await self._opened(driver) if self._group is None else self._group
            if not is_first:
                driver.execute(f"SAVEPOINT {SAVEPOINT}")
        except BaseException:
            self._turn.release()
            raise
        try:
            yield
            if not is_first:
                driver.execute(f"RELEASE {SAVEPOINT}")
            group.has_to_last |= manner.has_to_last
            group.committed.append(committed)
        except BaseException:
            self._undo(group, driver, whole=is_first)
            raise
        finally:
            self._turn.release()
            if is_first:
                await to_the_end(self._written(group, driver))
        await group.wait()

    @asynccontextmanager
    async def pause(self) -> AsyncIterator[None]:
        """Nothing is changed meanwhile, by nobody on this machine."""
        while True:
            async with self._turn:
                if self._group is None:
                    async with self._lock:
                        yield
                    return
                group = self._group
            await group.is_over.wait()

    async def _opened(self, driver: sqlite3.Connection) -> _Group:
        await self._lock.take()
        try:
            await self._begin(driver)
        except BaseException:
            self._lock.let_go()
            raise
        self._group = _Group()
        self._rows_before = driver.total_changes
        return self._group

    def _undo(self, group: _Group, driver: sqlite3.Connection, *, whole: bool) -> None:
        if driver.in_transaction and not whole:
            driver.execute(f"ROLLBACK TO {SAVEPOINT}")
            driver.execute(f"RELEASE {SAVEPOINT}")
            return
        # Either it was alone in the group, or the engine has rolled back the others too.
        self._close(driver)
        group.is_over.set()

    async def _written(self, group: _Group, driver: sqlite3.Connection) -> None:
        try:
            if await self._committed(group, driver):
                await (self._log.lasts() if group.has_to_last else self._log.caught_up())
                group.error = None
                for tell in group.committed:
                    tell()
        except (Contention, StoreUnavailable, sqlite3.Error) as error:
            group.error = error
        finally:
            group.is_over.set()

    async def _committed(self, group: _Group, driver: sqlite3.Connection) -> bool:
        """Behind everybody who waits for a turn by now: they are in this group."""
        async with self._turn:
            if self._group is not group:
                return False
            try:
                await self.commit(driver)
                if self._is_time_to_empty_the_log(group):
                    await self._empty_log(driver)
            finally:
                self._close(driver)
        return True

    async def commit(self, driver: sqlite3.Connection) -> None:
        rows = driver.total_changes - self._rows_before
        with translated():
            if rows < MANY_ROWS:
                driver.execute("COMMIT")
            else:
                await self._in_thread(driver, "COMMIT")
        self._rows_in_the_log += rows

    def _is_time_to_empty_the_log(self, group: _Group) -> bool:
        """Behind a commit that nobody waits for, unless none of them comes for long."""
        most = 2 * ROWS_IN_THE_LOG if group.has_to_last else ROWS_IN_THE_LOG
        return self._rows_in_the_log >= most

    async def _empty_log(self, driver: sqlite3.Connection) -> None:
        """As far as that can be done; the rest is tried again when it has grown further."""
        self._rows_in_the_log = 0
        with suppress(sqlite3.Error):
            await self._in_thread(driver, "PRAGMA wal_checkpoint(PASSIVE)")

    async def _in_thread(self, driver: sqlite3.Connection, statement: str) -> None:
        def run() -> None:
            # To its last row: a checkpoint with a row left unread would make the next commit fail.
            driver.execute(statement).fetchall()

        await asyncio.get_running_loop().run_in_executor(self.threads, run)

    def _close(self, driver: sqlite3.Connection) -> None:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
        self._group = None
        self._lock.let_go()
