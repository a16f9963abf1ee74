"""Changes that wait for the disk together.

One change at a time runs on the one writing connection. Who begins a transaction ends it too, but
lets those go first that wait for their turn by then: each of their changes is a savepoint in the
same transaction. So the more there is to write, the more is written by one commit, and whoever
waits never waits for more than one commit that is not its own.
"""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from cuepost.adapters.completion import to_the_end
from cuepost.adapters.storage.machine_lock import MachineLock
from cuepost.adapters.storage.sqlite_session import translated
from cuepost.ports.store import Contention, StoreUnavailable

SAVEPOINT = "one_of_a_group"


@dataclass(slots=True)
class _Group:
    """It counts as failed until it is written."""

    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    error: Exception | None = field(
        default_factory=lambda: Contention("a change that failed took others with it; try again")
    )

    async def wait(self) -> None:
        """Until everything in it is on the disk, or none of it."""
        await self.is_over.wait()
        if self.error is not None:
            raise self.error


class GroupCommit:
    def __init__(
        self,
        lock: MachineLock,
        threads: ThreadPoolExecutor,
        begin: Callable[[sqlite3.Connection], Awaitable[None]],
    ) -> None:
        self._lock = lock
        self.threads = threads
        self._begin = begin
        self._turn = asyncio.Lock()
        self._group: _Group | None = None

    @asynccontextmanager
    async def change(self, driver: sqlite3.Connection) -> AsyncIterator[None]:
        """When the block is left, the change is on the disk; after an exception it never was."""
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
        return self._group

    def _undo(self, group: _Group, driver: sqlite3.Connection, *, whole: bool) -> None:
        if driver.in_transaction and not whole:
            driver.execute(f"ROLLBACK TO {SAVEPOINT}")
            driver.execute(f"RELEASE {SAVEPOINT}")
            return
        # Either it was alone in the group, or the engine has rolled back the others too.
        self._close(group, driver)

    async def _written(self, group: _Group, driver: sqlite3.Connection) -> None:
        """Behind everybody who waits for a turn by now: they are in this group."""
        async with self._turn:
            if self._group is not group:
                return
            try:
                await self.commit(driver)
                group.error = None
            except (Contention, StoreUnavailable, sqlite3.Error) as error:
                group.error = error
            finally:
                self._close(group, driver)

    async def commit(self, driver: sqlite3.Connection) -> None:
        loop = asyncio.get_running_loop()
        with translated():
            await loop.run_in_executor(self.threads, driver.execute, "COMMIT")

    def _close(self, group: _Group, driver: sqlite3.Connection) -> None:
        if driver.in_transaction:
            driver.execute("ROLLBACK")
        self._group = None
        self._lock.let_go()
        group.is_over.set()
