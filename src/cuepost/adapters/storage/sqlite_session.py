"""A session on SQLite: short statements run on the calling thread, long ones in another."""

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import chain
from typing import Any, TypeVar

from cuepost.adapters.completion import run_to_completion
from cuepost.adapters.storage.columns import converted, kind_of
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.row_writes import Row, RowWrite, Verb
from cuepost.adapters.storage.session import Numbers, StoreSession
from cuepost.adapters.storage.sql import Sql, quoted
from cuepost.adapters.work_threads import WorkThreads
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


# The driver looks for an adapter of every value that is neither a number nor a text. Functions that
# return the value itself spare it from looking further, so it binds it in half of the time.
sqlite3.register_adapter(bytes, bytes.__bytes__)
_NOTHING: dict[None, None] = {}
sqlite3.register_adapter(type(None), _NOTHING.get)


@dataclass(eq=False, repr=False)
class SqliteSession(StoreSession):
    """Runs each statement on the calling thread, except writes of many rows."""

    driver: sqlite3.Connection
    threads: WorkThreads
    outbox: Outbox
    numbers: Numbers = field(default_factory=Numbers)
    dialect = "sqlite"
    uses_server_clock = False

    @property
    def offloaded(self) -> "ThreadedSession":
        return ThreadedSession(self.driver, self.threads, self.outbox, self.numbers)

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        return self._fetched(statement, values)

    async def execute(self, statement: Sql, **values: Any) -> int:
        return self._executed(statement, values)

    async def write(self, to: RowWrite, rows: Sequence[Row]) -> Sequence[Any]:
        if not rows:
            return ()
        # SQLite releases the GIL while a statement runs.
        if len(rows) >= MANY_ROWS:
            return await self.in_thread(partial(self._written, to, rows))
        return self._written(to, rows)

    async def in_thread(self, work: Callable[[], T]) -> T:
        with translated():
            return await run_to_completion(self.threads.run(work), self.driver.interrupt)

    # The following do not use `translated`, because it takes longer than a short statement.

    def _fetched(self, statement: Sql, values: Mapping[str, Any]) -> Sequence[Any]:
        written = statement.on_sqlite(values)
        try:
            cursor = self.driver.execute(written.text, written.values(values))
            rows = cursor.fetchall()
        except sqlite3.Error as error:
            raise port_error(error) from error
        if written.readers is None:
            written.describe([name for name, *_ in cursor.description or ()])
        return written.read(rows)

    def _executed(self, statement: Sql, values: Mapping[str, Any]) -> int:
        written = statement.on_sqlite(values)
        try:
            return self.driver.execute(written.text, written.values(values)).rowcount
        except sqlite3.Error as error:
            raise port_error(error) from error

    def _written(self, to: RowWrite, rows: Sequence[Row]) -> Sequence[Any]:
        encoded = converted(rows, to.to_sqlite)
        returned: list[Any] = []
        done = 0
        try:
            while left := len(rows) - done:
                many = [each for each in _MANY_AT_ONCE if each <= left]
                size = many[0] if many else min(left, _FEW_AT_ONCE)
                chunk = chain.from_iterable(encoded[done : done + size])
                found = self.driver.execute(_statement(to, size), list(chunk))
                if to.returns:
                    returned += [value for (value,) in found]
                done += size
        except sqlite3.Error as error:
            raise port_error(error) from error
        return returned


class ThreadedSession(SqliteSession):
    """Runs each statement in a thread, so that a long one does not block the loop."""

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        return await self.in_thread(lambda: self._fetched(statement, values))

    async def execute(self, statement: Sql, **values: Any) -> int:
        return await self.in_thread(lambda: self._executed(statement, values))

    async def write(self, to: RowWrite, rows: Sequence[Row]) -> Sequence[Any]:
        return await self.in_thread(lambda: self._written(to, rows)) if rows else ()


@contextmanager
def translated() -> Iterator[None]:
    """Turns errors of the driver into those of the port."""
    try:
        yield
    except sqlite3.Error as error:
        raise port_error(error) from error


def port_error(error: sqlite3.Error) -> StoreError:
    if getattr(error, "sqlite_errorname", None) in _TAKEN:
        return KeyTaken(str(error))
    # The lower byte is the primary error code.
    if getattr(error, "sqlite_errorcode", 0) & 0xFF in _UNAVAILABLE:
        return StoreUnavailable(f"the embedded store is not available: {error}")
    return StoreRefused(str(error))


@cache
def _statement(to: RowWrite, rows: int) -> str:
    """For that number of rows."""
    return _TEXTS[to.verb](to, rows)


def _values(to: RowWrite, rows: int) -> str:
    return ", ".join([f"({', '.join('?' for _ in to.columns)})"] * rows)


def _insertion(to: RowWrite, rows: int) -> str:
    # OR FAIL needs no statement journal: if a row is refused, the whole transaction is rolled back.
    return f"INSERT OR FAIL INTO {to.table} ({quoted(to.columns)}) VALUES {_values(to, rows)}"


def _accumulation(to: RowWrite, rows: int) -> str:
    counted = (name for name in to.columns if name not in to.key)
    sums = ", ".join(f"{name} = {name} + excluded.{name}" for name in counted)
    return f"{_insertion(to, rows)} ON CONFLICT ({quoted(to.key)}) DO UPDATE SET {sums}"


# SQLite makes a table of the given rows, unless there is only one.


def _change(to: RowWrite, rows: int) -> str:
    value, source = "new.column", f" FROM (VALUES {_values(to, rows)}) AS new"
    if rows == 1:
        value, source = "?", ""
    new = {name: f"{value}{place}" for place, name in enumerate(to.columns, 1)}
    changes = ", ".join(f'"{name}" = {new[name]}' for name in to.columns if name not in to.key)
    match = " AND ".join(f'{to.table}."{name}" = {new[name]}' for name in to.key)
    return f"UPDATE {to.table} SET {changes}{source} WHERE {match}"


def _deletion(to: RowWrite, rows: int) -> str:
    returning = f' RETURNING "{to.key[0]}"' if to.returns else ""
    if rows == 1:
        match = " AND ".join(f'"{name}" = ?' for name in to.key)
        return f"DELETE FROM {to.table} WHERE {match}{returning}"
    # SQLite compares all columns with the affinity of the first, and would use no index for ids
    # that are compared as numbers.
    in_order = sorted(enumerate(to.key, 1), key=lambda each: kind_of(to.table, each[1]).is_number)
    names = quoted(name for _, name in in_order)
    columns = ", ".join(f"column{place}" for place, _ in in_order)
    # Without the SELECT the whole table would be read.
    listed = f"SELECT {columns} FROM (VALUES {_values(to, rows)})"
    return f"DELETE FROM {to.table} WHERE ({names}) IN ({listed}){returning}"


_TEXTS: Mapping[Verb, Callable[[RowWrite, int], str]] = {
    "insert": _insertion,
    "accumulate": _accumulation,
    "update": _change,
    "delete": _deletion,
}
