"""The embedded store: one SQLite file, one writing connection, one writer at a time on the machine.

Statements of a change run on the thread of the event loop, where they take microseconds. Writes of
many rows, their commits and everything that waits for the disk run in another thread. Reads run in
threads with separate connections. SQLite before 3.51.3 can damage a write-ahead log that two
connections reset at once, so every change, open and close happens under a lock file.
"""

import asyncio
import os
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from cuepost.adapters.storage import schema, sqlite_statistics
from cuepost.adapters.storage.machine_lock import MachineLock
from cuepost.adapters.storage.outbox import NoHandover, Outbox
from cuepost.adapters.storage.sqlite_ledger import SqliteLedger
from cuepost.adapters.storage.sqlite_session import SqliteSession, translated
from cuepost.adapters.storage.sqlite_transaction import SqliteTransaction
from cuepost.adapters.work_threads import WorkThreads
from cuepost.ports.dispatch import Handover
from cuepost.ports.store import Action, Priority, StoreUnavailable, Transaction
from cuepost.ports.system import Clock

T = TypeVar("T")

READERS = 4
# Prepared statements; each number of rows up to 16 has its own.
STATEMENTS_KEPT = 512
BUSY_SECONDS = 5.0
# auto_vacuum must be set before the first table is created. It frees the space of deleted history.
_WRITER = (
    "auto_vacuum=INCREMENTAL",
    "journal_mode=WAL",
    "cache_size=-16384",
    # Otherwise each statement that may have to be undone writes a temporary file.
    "temp_store=MEMORY",
    # What is deleted is overwritten with zeros, also in pages that become free. Builds of SQLite
    # differ in their default.
    "secure_delete=ON",
)
# The ledger syncs and checkpoints the log itself; wal_autocheckpoint is the fallback.
_WRITER_LOG = ("synchronous=NORMAL", "wal_autocheckpoint=32768")
# Once the store is open, a lock of another program must not block the loop; the ledger polls.
_WRITER_READY = ("busy_timeout=0",)
_READER = ("query_only=ON",)


class SqliteStore:
    def __init__(self, path: Path, clock: Clock) -> None:
        self.handover: Handover = NoHandover()
        self._path = path
        self._clock = clock
        self._threads = WorkThreads(READERS + 1, "sqlite")
        self._machine_lock = MachineLock(path.with_name(path.name + ".lock"), clock)
        self._ledger = SqliteLedger(
            path, self._machine_lock, self._threads, clock, self._new_transaction
        )
        self._writer: sqlite3.Connection | None = None
        self._readers: list[sqlite3.Connection] = []
        # None tells waiting callers that the store was closed.
        self._idle_readers: asyncio.LifoQueue[sqlite3.Connection | None] = asyncio.LifoQueue()

    async def open(self) -> None:
        """Creates or migrates the file as needed; refuses one of an incompatible newer version."""
        async with self._ledger.pause():
            with translated():
                self._writer = self._connect_writer()
                self._ledger.open(self._writer)
                self._readers = [self._connect("ro", *_READER) for _ in range(READERS)]
            for reader in self._readers:
                self._idle_readers.put_nowait(reader)

    async def close(self) -> None:
        """Waits for running reads and writes; later ones are refused."""
        for _ in self._readers:
            await self._idle_readers.get()
        async with self._ledger.pause():
            await self._ledger.close()
            for connection in (*self._readers, self._writer):
                if connection is not None:
                    connection.close()
            self._readers, self._writer = [], None
            self._idle_readers.put_nowait(None)
        self._machine_lock.close()
        self._threads.close()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        transaction = self._new_transaction(self._require_open())
        try:
            async with self._ledger.change(transaction.session.outbox.committed):
                yield transaction
        except BaseException:
            transaction.session.outbox.rolled_back()
            raise

    async def write(self, action: Action[T], priority: Priority) -> T:
        return await self._ledger.write(action, priority)

    def _new_transaction(self, driver: sqlite3.Connection) -> SqliteTransaction:
        return SqliteTransaction(SqliteSession(driver, self._threads, Outbox(self.handover)))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        async with self._reading() as connection:
            yield self._new_transaction(connection)

    single_read = snapshot

    async def check(self) -> None:
        self._ledger.require_intact()
        async with self._reading() as connection:
            session = self._new_transaction(connection).session
            found = await session.in_thread(lambda: schema.found_on_sqlite(connection))
        try:
            found.require_usable()
        except schema.WrongSchema as error:
            raise StoreUnavailable(str(error)) from error

    async def prepare_days(self, now: datetime) -> None:
        """Does nothing: the tables of this engine are not partitioned."""

    @asynccontextmanager
    async def _reading(self) -> AsyncIterator[sqlite3.Connection]:
        self._require_open()
        connection = await self._idle_readers.get()
        if connection is None:
            self._idle_readers.put_nowait(None)
            raise StoreUnavailable("the embedded store was closed")
        try:
            with translated():
                connection.execute("BEGIN")
            yield connection
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            self._idle_readers.put_nowait(connection)

    def _connect_writer(self) -> sqlite3.Connection:
        os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        connection = self._connect("rw", *_WRITER, *_WRITER_LOG)
        try:
            _bring_up_to_date(connection)
            sqlite_statistics.install(connection)
            _set(connection, *_WRITER_READY)
        except BaseException:
            connection.close()
            raise
        return connection

    def _connect(self, mode: str, *pragmas: str) -> sqlite3.Connection:
        connection = sqlite3.connect(
            f"{self._path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=BUSY_SECONDS,
            check_same_thread=False,
            isolation_level=None,
            cached_statements=STATEMENTS_KEPT,
        )
        _set(connection, *pragmas)
        return connection

    def _require_open(self) -> sqlite3.Connection:
        if self._writer is None:
            raise StoreUnavailable("the embedded store is closed")
        return self._writer


def _set(connection: sqlite3.Connection, *pragmas: str) -> None:
    for pragma in pragmas:
        connection.execute(f"PRAGMA {pragma}")


def _bring_up_to_date(connection: sqlite3.Connection) -> None:
    found = schema.found_on_sqlite(connection)
    found.require_compatible()
    if not found.is_usable:
        # Imported here, because a start rarely needs it.
        from cuepost.adapters.storage.upgrading import upgrade_sqlite  # noqa: PLC0415  # see above

        upgrade_sqlite(connection)
