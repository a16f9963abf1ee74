"""Every change of the embedded store: one transaction at a time, on one connection.

Writes of the hot path that wait at the same time share a transaction, so each costs less the more
there are. Writes that callers wait for come first; claims and results are deferred once. If a write
fails, all are rolled back and each is run separately. A transaction begins only after the one
before it is on the disk, so nothing can depend on a commit that could be lost.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from cuepost.adapters.completion import run_to_completion
from cuepost.adapters.storage.machine_lock import MachineLock, wait_for_turn
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.sqlite_session import MANY_ROWS, port_error
from cuepost.adapters.storage.sqlite_transaction import SqliteTransaction
from cuepost.adapters.work_threads import WorkThreads
from cuepost.ports.saving import committing
from cuepost.ports.store import Action, CommitUnknown, Priority, StoreUnavailable
from cuepost.ports.system import Clock

T = TypeVar("T")

# They make a log of some tens of megabytes.
CHECKPOINT_ROWS = 4_000


@dataclass(slots=True, eq=False)
class _Write(Generic[T]):
    action: Action[T]
    priority: Priority
    answer: asyncio.Future[T]
    was_deferred: bool = False
    _outbox: Outbox | None = None
    _made: list[T] = field(default_factory=list)

    @property
    def has_begun(self) -> bool:
        return self._outbox is not None

    async def run(self, transaction: SqliteTransaction) -> None:
        self._outbox = transaction.session.outbox
        self._made.append(await self.action(transaction))

    def committed(self) -> None:
        if self._outbox is None:
            return
        self._outbox.committed()
        if not self.answer.done():
            self.answer.set_result(self._made[0])

    def rolled_back(self) -> None:
        if self._outbox is not None:
            self._outbox.rolled_back()
            self._outbox = None
            self._made.clear()


@dataclass
class SqliteLedger:
    """`new_transaction` gives each write its own records and outbox."""

    path: Path
    lock: MachineLock
    threads: WorkThreads
    clock: Clock
    new_transaction: Callable[[sqlite3.Connection], SqliteTransaction]
    sync: Callable[[int], None] = os.fdatasync
    _driver: sqlite3.Connection | None = None
    _log: int | None = None
    _is_log_damaged: bool = False
    _rows_before: int = 0
    _rows_in_the_log: int = 0
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _waiting: list[_Write[Any]] = field(default_factory=list)
    _turns: asyncio.Task[None] | None = None

    def open(self, driver: sqlite3.Connection) -> None:
        """The log is the same file for as long as a connection to the store is open."""
        self._driver = driver
        log = self.path.with_name(self.path.name + "-wal")
        self._log = os.open(log, os.O_RDONLY | os.O_CLOEXEC)

    async def close(self) -> None:
        """Syncs the log first, so that every commit is on the disk, unless the disk fails."""
        if self._log is not None:
            with suppress(StoreUnavailable):
                await self.threads.run(self._sync_log)
            os.close(self._log)
            self._log = self._driver = None

    def require_intact(self) -> None:
        """After a failed sync, a part of the log and everything behind it may be lost."""
        if self._is_log_damaged:
            raise StoreUnavailable("the log of the embedded store could not be synced; restart")

    async def write(self, action: Action[T], priority: Priority) -> T:
        answer: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        write = _Write(action, priority, answer)
        self._waiting.append(write)
        if self._turns is None or self._turns.done():
            self._turns = asyncio.ensure_future(self._take_turns())  # noqa: TID251  # it ends soon
        return await answer

    @asynccontextmanager
    async def change(self, committed: Callable[[], None]) -> AsyncIterator[None]:
        """After the block, the change is on the disk; after an exception, it was rolled back.

        A caller that is cancelled during the commit learns the result only through `committed`.
        """
        async with self._turn:
            driver = await self._begin()
            try:
                yield
                with committing():
                    await run_to_completion(self._finish(driver, [committed], durable=True))
            finally:
                self._end(driver)

    @asynccontextmanager
    async def pause(self) -> AsyncIterator[None]:
        """No process on this machine changes the store inside the block."""
        while self._turns is not None and not self._turns.done():
            await asyncio.wait([self._turns])
        async with self._turn, self.lock:
            yield

    async def _take_turns(self) -> None:
        while self._waiting:
            async with self._turn:
                if writes := self._next_turn():
                    await self._write_together(writes)
            # Callers whose writes are committed continue before the next turn.
            await asyncio.sleep(0)  # noqa: TID251  # no time is waited for

    def _next_turn(self) -> Sequence[_Write[Any]]:
        """Ingest writes; claims and results too if there are none, or if they were deferred."""
        waiting = [each for each in self._waiting if not each.answer.done()]
        first = [each for each in waiting if each.priority is Priority.INGEST]
        rest = [each for each in waiting if each.priority is Priority.BACKGROUND]
        chosen = first + [each for each in rest if each.was_deferred or not first]
        self._waiting = [each for each in rest if each not in chosen]
        for each in self._waiting:
            each.was_deferred = True
        return chosen

    async def _write_together(self, writes: Sequence[_Write[Any]]) -> None:
        all_ran = False
        try:
            driver = await self._begin()
            try:
                for write in writes:
                    if not write.answer.done():
                        await write.run(self.new_transaction(driver))
                all_ran = True
                durable = any(write.priority is Priority.INGEST for write in writes)
                await self._finish(driver, [write.committed for write in writes], durable=durable)
            finally:
                self._end(driver)
        except Exception as error:  # noqa: BLE001  # passed on to the waiting callers
            one_failed = not all_ran and any(write.has_begun for write in writes)
            await self._fail(writes, error, one_failed=one_failed)

    async def _fail(
        self, writes: Sequence[_Write[Any]], error: Exception, *, one_failed: bool
    ) -> None:
        """If one of several writes failed, each is run separately."""
        for write in writes:
            write.rolled_back()
        if one_failed and len(writes) > 1:
            for write in writes:
                await self._write_together([write])
            return
        for write in writes:
            if not write.answer.done():
                write.answer.set_exception(error)

    async def _begin(self) -> sqlite3.Connection:
        """Begins a transaction, which has to be ended."""
        self.require_intact()
        if self._driver is None:
            raise StoreUnavailable("the embedded store is closed")
        driver = self._driver
        await wait_for_turn(self.clock, self.lock.take)
        try:
            await wait_for_turn(self.clock, partial(self._has_begun, driver))
        except BaseException:
            self.lock.release()
            raise
        self._rows_before = driver.total_changes
        return driver

    def _end(self, driver: sqlite3.Connection) -> None:
        """Rolls back what was not committed."""
        try:
            if driver.in_transaction:
                driver.execute("ROLLBACK")
        finally:
            self.lock.release()

    def _has_begun(self, driver: sqlite3.Connection) -> bool:
        try:
            driver.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY:
                return False
            raise port_error(error) from error
        return True

    async def _finish(
        self, driver: sqlite3.Connection, committed: Sequence[Callable[[], None]], *, durable: bool
    ) -> None:
        """Commit, and then call each of `committed`."""
        rows = driver.total_changes - self._rows_before
        await self.commit(rows, durable=durable)
        for pass_on in committed:
            pass_on()
        self._rows_in_the_log += rows
        # Preferably after a commit that no caller waits for, unless there is none for long.
        if self._rows_in_the_log >= (2 if durable else 1) * CHECKPOINT_ROWS:
            self._rows_in_the_log = 0
            with suppress(sqlite3.Error):
                # All rows are fetched, because an unfinished statement would make the next commit
                # fail.
                checkpoint = "PRAGMA wal_checkpoint(PASSIVE)"
                await self.threads.run(lambda: driver.execute(checkpoint).fetchall())

    async def commit(self, rows: int, *, durable: bool) -> None:
        commit = partial(self._commit, durable=durable)
        if durable or rows >= MANY_ROWS:
            await self.threads.run(commit)
        else:
            commit()

    def _commit(self, *, durable: bool) -> None:
        assert self._driver is not None
        try:
            self._driver.execute("COMMIT")
        except sqlite3.Error as error:
            raise port_error(error) from error
        if durable:
            self._sync_log()

    def _sync_log(self) -> None:
        """With synchronous=NORMAL SQLite does not sync, so background writes need not wait."""
        assert self._log is not None
        try:
            self.sync(self._log)
        except OSError as error:
            self._is_log_damaged = True
            raise CommitUnknown(f"the embedded store is not on the disk: {error}") from error
