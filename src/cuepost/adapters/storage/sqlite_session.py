"""A session on SQLite: short statements run on the calling thread, long ones in another."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, partial
from itertools import chain
from typing import Any, Literal, TypeVar

from cuepost.adapters.completion import run_to_completion
from cuepost.adapters.storage.columns import ColumnType, kind_of
from cuepost.adapters.storage.encoding import ON_SQLITE
from cuepost.adapters.storage.session import EncodedRows, Numbers, Rows
from cuepost.adapters.storage.sql import Sql
from cuepost.ports.store import KeyTaken, StoreError, StoreRefused, StoreUnavailable

T = TypeVar("T")

# Few different sizes, so that the driver can reuse its prepared statements.
_MANY_AT_ONCE = (100, 30)
_FEW_AT_ONCE = 16
# From this number of rows on, a write takes long enough to be worth a thread.
MANY_ROWS = 32
_TAKEN = ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE")
_UNAVAILABLE = frozenset(
    {
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_CORRUPT,
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_NOTADB,
    }
)


class SqliteSession:
    """Runs each statement on the calling thread."""

    dialect: Literal["sqlite"] = "sqlite"
    encoding = ON_SQLITE
    uses_server_clock = False

    def __init__(
        self,
        driver: sqlite3.Connection,
        threads: ThreadPoolExecutor,
        numbers: Numbers | None = None,
    ) -> None:
        self.driver = driver
        self._threads = threads
        self.numbers = Numbers() if numbers is None else numbers

    @property
    def offloaded(self) -> "ThreadedSession":
        return ThreadedSession(self.driver, self._threads, self.numbers)

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        written = statement.on(self.dialect)
        parameters = written.values(values)

        def work() -> tuple[sqlite3.Cursor, list[Any]]:
            cursor = self.driver.execute(written.text, parameters)
            return cursor, cursor.fetchall()

        cursor, rows = await self._do(work)
        return written.read(lambda: [name for name, *_ in cursor.description], rows) if rows else ()

    async def execute(self, statement: Sql, **values: Any) -> int:
        written = statement.on(self.dialect)
        parameters = written.values(values)
        return await self._do(lambda: self.driver.execute(written.text, parameters).rowcount)

    async def insert(self, table: str, rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            await self.insert_encoded(table, columns, _encoded(table, columns, rows))

    async def update(self, table: str, key: Sequence[str], rows: Rows) -> None:
        if rows:
            changed = tuple(column for column in rows[0] if column not in key)
            encoded = _encoded(table, (*changed, *key), rows)
            await self.update_encoded(table, tuple(key), changed, encoded)

    async def delete(self, table: str, key: Sequence[str], rows: Rows) -> None:
        if rows:
            await self.delete_encoded(table, tuple(key), _encoded(table, tuple(key), rows))

    async def insert_encoded(self, table: str, columns: tuple[str, ...], rows: EncodedRows) -> None:
        await self._write(partial(_insert_sql, table, columns), rows)

    async def update_encoded(
        self, table: str, key: tuple[str, ...], changed: tuple[str, ...], rows: EncodedRows
    ) -> None:
        await self._write(partial(_update_sql, table, changed, key), rows)

    async def delete_encoded(self, table: str, key: tuple[str, ...], rows: EncodedRows) -> None:
        await self._write(partial(_delete_sql, table, key, None), rows)

    async def accumulate_encoded(
        self, table: str, key: tuple[str, ...], counted: tuple[str, ...], rows: EncodedRows
    ) -> None:
        await self._write(partial(_accumulate_sql, table, key, counted), rows)

    async def remove_encoded(
        self, table: str, match: tuple[str, ...], rows: EncodedRows
    ) -> Sequence[Any]:
        """As `delete_encoded`, but returns the first column of each deleted row."""
        removed: list[tuple[Any]] = []
        await self._write(partial(_delete_sql, table, match, match[0]), rows, removed)
        return [value for (value,) in removed]

    async def in_thread(self, work: Callable[[], T]) -> T:
        loop = asyncio.get_running_loop()
        with translated():
            return await run_to_completion(
                loop.run_in_executor(self._threads, work), self.driver.interrupt
            )

    async def _write(
        self, sql_for: Callable[[int], str], rows: EncodedRows, returned: list[Any] | None = None
    ) -> None:
        """`sql_for(n)` is the statement for n rows. SQLite releases the GIL while one runs."""

        def work() -> None:
            self._in_chunks(sql_for, rows, returned)

        if rows:
            await (self.in_thread(work) if len(rows) >= MANY_ROWS else self._do(work))

    async def _do(self, work: Callable[[], T]) -> T:
        # As `translated`, without the cost of a context manager.
        try:
            return work()
        except sqlite3.Error as error:
            raise _port_error(error) from error

    def _in_chunks(
        self, sql_for: Callable[[int], str], rows: EncodedRows, returned: list[Any] | None
    ) -> None:
        done = 0
        while left := len(rows) - done:
            size = next((each for each in _MANY_AT_ONCE if each <= left), min(left, _FEW_AT_ONCE))
            chunk = rows[done : done + size]
            cursor = self.driver.execute(sql_for(size), list(chain.from_iterable(chunk)))
            if returned is not None:
                returned += cursor
            done += size


class ThreadedSession(SqliteSession):
    """Runs each statement in a thread, so that a long one does not block the loop."""

    async def _do(self, work: Callable[[], T]) -> T:
        return await self.in_thread(work)


class ReaderSession(ThreadedSession):
    """A read-only session. `fetch` takes only a few index steps, so it runs on the calling thread;
    long queries use `offloaded`."""

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        session = SqliteSession(self.driver, self._threads, self.numbers)
        return await session.fetch(statement, **values)


@contextmanager
def translated() -> Iterator[None]:
    """Turns errors of the driver into those of the port."""
    try:
        yield
    except sqlite3.Error as error:
        raise _port_error(error) from error


def _port_error(error: sqlite3.Error) -> StoreError:
    if getattr(error, "sqlite_errorname", None) in _TAKEN:
        return KeyTaken(str(error))
    # The lower byte is the primary error code.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNAVAILABLE:
        return StoreUnavailable(f"the embedded store is not available: {error}")
    return StoreRefused(str(error))


@cache
def _insert_sql(table: str, columns: tuple[str, ...], rows: int) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    marks = ", ".join("?" for _ in columns)
    # OR FAIL needs no statement journal: if a row is refused, the whole transaction is rolled back.
    return f"INSERT OR FAIL INTO {table} ({names}) VALUES " + ", ".join([f"({marks})"] * rows)


@cache
def _accumulate_sql(table: str, key: tuple[str, ...], counted: tuple[str, ...], rows: int) -> str:
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in counted)
    inserted = _insert_sql(table, (*key, *counted), rows)
    return f"{inserted} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sums}"


@cache
def _update_sql(table: str, changed: tuple[str, ...], key: tuple[str, ...], rows: int) -> str:
    places = range(1, len(changed) + len(key) + 1)
    named = dict(zip((*changed, *key), (f"new.column{place}" for place in places), strict=True))
    changes = ", ".join(f'"{column}" = {named[column]}' for column in changed)
    match = " AND ".join(f'{table}."{column}" = {named[column]}' for column in key)
    marks = ", ".join("?" for _ in places)
    values = ", ".join([f"({marks})"] * rows)
    return f"UPDATE {table} SET {changes} FROM (VALUES {values}) AS new WHERE {match}"


@cache
def _delete_sql(table: str, key: tuple[str, ...], returned: str | None, rows: int) -> str:
    # SQLite compares all columns with the affinity of the first, and would use no index for ids
    # that are compared as numbers.
    in_order = sorted(enumerate(key, 1), key=lambda each: kind_of(table, each[1]).is_number)
    names = ", ".join(f'"{column}"' for _, column in in_order)
    columns = ", ".join(f"column{place}" for place, _ in in_order)
    marks = ", ".join("?" for _ in key)
    values = ", ".join([f"({marks})"] * rows)
    # Without the SELECT the whole table would be read.
    listed = f"SELECT {columns} FROM (VALUES {values})"
    returning = "" if returned is None else f' RETURNING "{returned}"'
    return f"DELETE FROM {table} WHERE ({names}) IN ({listed}){returning}"


Column = Callable[[Sequence[Any]], Sequence[Any]]
"""Converts a whole column of UUIDs, instants or other values that the driver does not know."""


def _encoded(table: str, columns: tuple[str, ...], rows: Rows) -> list[tuple[Any, ...]]:
    writers = _writers(table, columns)
    return list(zip(*(write([row[name] for row in rows]) for name, write in writers), strict=True))


@cache
def _writers(table: str, columns: tuple[str, ...]) -> Sequence[tuple[str, Column]]:
    return [(name, _writer(kind_of(table, name))) for name in columns]


def _writer(kind: ColumnType) -> Column:
    convert = kind.to_sqlite
    if convert is None:
        return _as_it_is
    return lambda values: [None if value is None else convert(value) for value in values]


def _as_it_is(values: Sequence[Any]) -> Sequence[Any]:
    return values
