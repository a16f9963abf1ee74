"""The embedded store: one SQLite file, one writing connection, one writer at a time on the machine.

Statements of a change run on the event loop's own thread, where they cost microseconds; only the
commit, which waits for the disk, goes to a thread. Reads go to threads with connections of their
own. SQLite before 3.51.3 can damage a write-ahead log that two connections reset at once, so every
change, open and close happens under a lock file.
"""

import asyncio
import fcntl
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import sqlalchemy as sa

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.session import Rows
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.instants import to_millis
from cuepost.ports.runtime import Clock
from cuepost.ports.store import StoreUnavailable, Transaction

T = TypeVar("T")

READERS = 4
LOCK_PATIENCE_SECONDS = 30.0
LOCK_POLL_SECONDS = 0.002
_PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000")


class SqliteStore:
    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._threads = ThreadPoolExecutor(READERS + 1, thread_name_prefix="sqlite")
        self._turn = asyncio.Lock()
        self._machine_lock = MachineLock(path.with_name(path.name + ".lock"), clock)
        self._idle_readers: asyncio.LifoQueue[sa.Connection] = asyncio.LifoQueue()
        self._writer: sa.Connection | None = None
        self._readers: list[sa.Connection] = []

    async def open(self) -> None:
        """Create or migrate the file as needed; refuse one that a newer cuepost has made."""
        async with self._machine_lock:
            self._writer = self._connect("rwc")
            schema.bring_up_to_date(self._writer)
            for _ in range(READERS):
                reader = self._connect("ro")
                self._readers.append(reader)
                self._idle_readers.put_nowait(reader)

    async def close(self) -> None:
        async with self._turn, self._machine_lock:
            for connection in (*self._readers, self._writer):
                if connection is not None:
                    connection.close()
                    connection.engine.dispose()
            self._readers, self._writer = [], None
        self._threads.shutdown()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        async with self._turn, self._machine_lock:
            connection = self._require_open()
            connection.exec_driver_sql("BEGIN IMMEDIATE")
            try:
                yield RecordsTransaction(InlineSession(connection))
                await self._commit(connection)
            except BaseException:
                if _in_transaction(connection):
                    connection.exec_driver_sql("ROLLBACK")
                raise

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        self._require_open()
        connection = await self._idle_readers.get()
        session = ThreadedSession(connection, self._threads)
        try:
            await session.do(lambda: connection.exec_driver_sql("BEGIN"))
            yield RecordsTransaction(session)
        finally:
            if _in_transaction(connection):
                connection.exec_driver_sql("ROLLBACK")
            self._idle_readers.put_nowait(connection)

    async def check(self) -> None:
        async with self.snapshot() as transaction:
            await transaction.accounts.all()

    async def prepare_days(self, now: datetime) -> None:
        """Nothing to do: the tables of this engine are not partitioned."""

    async def _commit(self, connection: sa.Connection) -> None:
        """Even when the caller gives up meanwhile, the connection is free only after the commit."""
        commit = asyncio.get_running_loop().run_in_executor(
            self._threads, lambda: connection.exec_driver_sql("COMMIT")
        )
        try:
            await asyncio.shield(commit)
        except asyncio.CancelledError:
            await asyncio.wait([commit])
            raise

    def _connect(self, mode: str) -> sa.Connection:
        uri = f"{self._path.absolute().as_uri()}?mode={mode}"

        def connect() -> sqlite3.Connection:
            return sqlite3.connect(uri, uri=True, check_same_thread=False, isolation_level=None)

        engine = sa.create_engine("sqlite://", creator=connect, poolclass=sa.StaticPool)
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        for pragma in _PRAGMAS if mode == "rwc" else ():
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        return connection

    def _require_open(self) -> sa.Connection:
        if self._writer is None:
            raise StoreUnavailable("the embedded store is closed")
        return self._writer


class MachineLock:
    """One holder on the whole machine, by a lock on a file that nobody ever deletes."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._descriptor: int | None = None

    async def __aenter__(self) -> None:
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        waited = 0.0
        while not self._try(self._descriptor):
            if waited >= LOCK_PATIENCE_SECONDS:
                raise StoreUnavailable("another process keeps the embedded store locked")
            await self._clock.wait(LOCK_POLL_SECONDS)
            waited += LOCK_POLL_SECONDS

    async def __aexit__(self, *_: object) -> None:
        assert self._descriptor is not None
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    @staticmethod
    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class InlineSession:
    """Runs each statement at once, on the thread that asks."""

    dialect = "sqlite"

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return self._connection.execute(statement).all()

    async def run(self, statement: sa.Executable) -> int:
        return self._connection.execute(statement).rowcount

    async def insert(self, table: sa.Table, rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            self._many(_insert_sql(table, columns), _encoded(table, columns, rows))

    async def update(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            changed = tuple(column for column in rows[0] if column not in key)
            columns = (*changed, *key)
            self._many(_update_sql(table, changed, tuple(key)), _encoded(table, columns, rows))

    def _many(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        driver = self._connection.connection.driver_connection
        assert isinstance(driver, sqlite3.Connection)
        driver.executemany(sql, rows)


class ThreadedSession(InlineSession):
    """Reads in a thread, so that a long one holds nobody up."""

    def __init__(self, connection: sa.Connection, threads: ThreadPoolExecutor) -> None:
        super().__init__(connection)
        self._threads = threads

    async def do(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return await self.do(lambda: self._connection.execute(statement).all())


def _in_transaction(connection: sa.Connection) -> bool:
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver.in_transaction


@cache
def _insert_sql(table: sa.Table, columns: tuple[str, ...]) -> str:
    marks = ", ".join("?" for _ in columns)
    return f"INSERT INTO {table.name} ({_quoted(columns)}) VALUES ({marks})"


@cache
def _update_sql(table: sa.Table, changed: tuple[str, ...], key: tuple[str, ...]) -> str:
    changes = ", ".join(f'"{column}" = ?' for column in changed)
    match = " AND ".join(f'"{column}" = ?' for column in key)
    return f"UPDATE {table.name} SET {changes} WHERE {match}"


def _quoted(columns: Sequence[str]) -> str:
    return ", ".join(f'"{column}"' for column in columns)


def _encoded(table: sa.Table, columns: Sequence[str], rows: Rows) -> list[tuple[Any, ...]]:
    """Whole columns at a time: the driver takes neither UUIDs nor instants."""
    return list(zip(*(_encoded_column(table, name, rows) for name in columns), strict=True))


def _encoded_column(table: sa.Table, name: str, rows: Rows) -> list[Any]:
    kind = table.c[name].type
    if isinstance(kind, Id):
        return [None if (value := row[name]) is None else value.bytes for row in rows]
    if isinstance(kind, Instant):
        return [None if (value := row[name]) is None else to_millis(value) for row in rows]
    return [row[name] for row in rows]
