"""When what was committed to the embedded store outlasts a power cut.

SQLite leaves it to us to bring its write-ahead log to the disk after a commit. So only those wait
for the disk whose changes have to last, and all that are committed by then wait for one sync.
"""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from pathlib import Path

from cuepost.adapters.completion import to_the_end
from cuepost.ports.store import StoreUnavailable


class SqliteLog:
    def __init__(self, store: Path, threads: Executor) -> None:
        self._path = store.with_name(store.name + "-wal")
        self.threads = threads
        self._descriptor: int | None = None
        self._turn = asyncio.Lock()
        # Numbers of changes that have to last.
        self._committed = 0
        self._synced = 0
        self._failed = False
        self.sync: Callable[[int], None] = os.fdatasync

    def open(self) -> None:
        """The file stays the same as long as a connection to the store is open."""
        self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)

    async def close(self) -> None:
        """Everything is on the disk by then, unless the disk fails."""
        if self._descriptor is not None:
            with suppress(StoreUnavailable):
                await self.lasts()
            os.close(self._descriptor)
            self._descriptor = None

    async def lasts(self) -> None:
        """Until everything that is committed by now is on the disk."""
        self._committed += 1
        await self.caught_up()

    async def caught_up(self) -> None:
        """Until everything is on the disk for which somebody waits by now."""
        wanted = self._committed
        if self._synced < wanted:
            async with self._turn:
                if self._synced < wanted:
                    await self._sync_all()

    def require_intact(self) -> None:
        """A disk that failed to take the log may have lost a piece of it, and all behind that."""
        if self._failed:
            raise StoreUnavailable("the disk did not take the log of the embedded store; restart")

    async def _sync_all(self) -> None:
        """It begins at once, without a turn of the event loop, and is seen to its end."""
        self.require_intact()
        loop = asyncio.get_running_loop()
        syncing = loop.run_in_executor(self.threads, self._sync_up_to, self._committed)
        try:
            await to_the_end(syncing)
        except OSError as error:
            raise StoreUnavailable(f"the embedded store is not on the disk: {error}") from error

    def _sync_up_to(self, committed: int) -> None:
        """In a thread: how it ended is known before anybody who waits goes on, or is cancelled."""
        assert self._descriptor is not None
        try:
            self.sync(self._descriptor)
        except OSError:
            self._failed = True
            raise
        self._synced = committed
