"""A session on PostgreSQL: many rows are written as arrays, several tables in one round trip."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import asyncpg

from cuepost.adapters.storage.columns import converted
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_writes import Columns, Shape, equal_columns, together
from cuepost.adapters.storage.row_writes import Row, RowWrite
from cuepost.adapters.storage.session import Numbers, StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.ports.store import (
    Contention,
    KeyTaken,
    StoreError,
    StoreRefused,
    StoreUnavailable,
)

# The driver raises InternalClientError for a command on a connection that the server is closing.
CONNECTION_ERRORS = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
# The driver treats errors of class 02 as warnings, but raises them.
SERVER_ERRORS = (asyncpg.PostgresError, asyncpg.PostgresWarning)
DRIVER_ERRORS = (*SERVER_ERRORS, *CONNECTION_ERRORS)

# Serialisation failure, deadlock, lock not available.
_CONTENTION = ("40001", "40P01", "55P03")
_UNIQUE_VIOLATION = "23505"
# Statements and data that no server would accept. Any other error may be temporary: the server is
# read-only, starting, stopping, out of space, or cannot read its disk.
_DATA_EXCEPTION = "22"
_OUR_FAULT = ("21", _DATA_EXCEPTION, "23", "42")


@dataclass(eq=False, repr=False)
class PostgresSession(StoreSession):
    """Holds writes back until another statement depends on them, then sends all in one round trip.

    They are of different tables, because none sees the changes of another.
    """

    driver: Driver
    outbox: Outbox
    uses_server_clock: bool
    numbers: Numbers = field(default_factory=Numbers)
    dialect = "postgresql"
    _held: dict[Shape, Columns] = field(default_factory=dict)

    @property
    def offloaded(self) -> "PostgresSession":
        return self

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        await self.flush()
        written = statement.postgresql
        with translated():
            rows = await self.driver.fetch(written.text, *written.values(values))
        if not rows:
            return ()
        if written.readers is None:
            written.describe(rows[0].keys())
        return written.read(rows)

    async def execute(self, statement: Sql, **values: Any) -> int:
        await self.flush()
        written = statement.postgresql
        with translated():
            told = await self.driver.execute(written.text, *written.values(values))
        # Such as "DELETE 3".
        return int(told.rpartition(" ")[2])

    async def write(self, to: RowWrite, rows: Sequence[Row]) -> Sequence[Any]:
        """Returns nothing, because the write may be sent later."""
        if rows:
            if any(shape.write.table == to.table for shape in self._held):
                await self.flush()
            columns = list(zip(*converted(rows, to.to_postgres), strict=True))
            self._held[Shape(to, equal_columns(to, columns))] = columns
        return ()

    async def flush(self) -> None:
        """Called before each read and before the commit."""
        if self._held:
            held, self._held = self._held, {}
            values = [value for shape, columns in held.items() for value in shape.values(columns)]
            with translated():
                await self.driver.execute(together(tuple(held)), *values)


@contextmanager
def translated() -> Iterator[None]:
    """Turns errors of the driver into those of the port."""
    try:
        yield
    except SERVER_ERRORS as error:
        raise _port_error(error) from error
    except asyncpg.DataError:
        raise
    except CONNECTION_ERRORS as error:
        raise StoreUnavailable(f"the database connection failed: {error}") from error


def _port_error(error: asyncpg.PostgresError | asyncpg.PostgresWarning) -> StoreError:
    # The lines after the first may contain rows, and the first line of a data exception a value
    # that is out of range or malformed.
    has_value = error.sqlstate.startswith(_DATA_EXCEPTION)
    said = type(error).__name__ if has_value else str(error).partition("\n")[0]
    words = f"{said} (SQLSTATE {error.sqlstate})"
    if error.sqlstate == _UNIQUE_VIOLATION:
        return KeyTaken(words, error.sqlstate)
    if error.sqlstate in _CONTENTION:
        return Contention(words, error.sqlstate)
    if error.sqlstate.startswith(_OUR_FAULT):
        return StoreRefused(words, error.sqlstate)
    return StoreUnavailable(f"the database is not available: {words}", error.sqlstate)
