"""A session on PostgreSQL: many rows are written as arrays, several tables in one round trip."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import asyncpg

from cuepost.adapters.storage.encoding import ON_POSTGRES
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_writes import Shape, Writes, equal_columns
from cuepost.adapters.storage.session import EncodedRows, Numbers, Rows
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


class PostgresSession:
    dialect: Literal["postgresql"] = "postgresql"
    encoding = ON_POSTGRES

    def __init__(self, driver: Driver, *, uses_server_clock: bool = False) -> None:
        self.driver = driver
        self.uses_server_clock = uses_server_clock
        self.numbers = Numbers()
        self._writes = Writes()

    @property
    def offloaded(self) -> "PostgresSession":
        return self

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        await self.flush()
        written = statement.on(self.dialect)
        with translated():
            rows = await self.driver.fetch(written.text, *written.values(values))
        return written.read(rows[0].keys, rows) if rows else ()

    async def execute(self, statement: Sql, **values: Any) -> int:
        await self.flush()
        written = statement.on(self.dialect)
        with translated():
            told = await self.driver.execute(written.text, *written.values(values))
        # Such as "DELETE 3".
        return int(told.rpartition(" ")[2])

    async def insert(self, table: str, rows: Rows) -> None:
        if rows:
            await self._write(Shape("insert", table, tuple(rows[0])), rows)

    async def update(self, table: str, key: Sequence[str], rows: Rows) -> None:
        if rows:
            await self._write(Shape("update", table, tuple(rows[0]), tuple(key)), rows)

    async def delete(self, table: str, key: Sequence[str], rows: Rows) -> None:
        if rows:
            await self._write(Shape("delete", table, tuple(key), tuple(key)), rows)

    async def insert_encoded(self, table: str, columns: tuple[str, ...], rows: EncodedRows) -> None:
        if rows:
            values = list(zip(*rows, strict=True))
            equal = equal_columns(table, columns, values)
            await self._buffer(Shape("insert", table, columns, equal=equal), values)

    async def update_encoded(
        self, table: str, key: tuple[str, ...], changed: tuple[str, ...], rows: EncodedRows
    ) -> None:
        if rows:
            columns, values = (*changed, *key), list(zip(*rows, strict=True))
            equal = equal_columns(table, columns, values)
            await self._buffer(Shape("update", table, columns, key, equal), values)

    async def accumulate_encoded(
        self, table: str, key: tuple[str, ...], counted: tuple[str, ...], rows: EncodedRows
    ) -> None:
        if rows:
            columns, values = (*key, *counted), list(zip(*rows, strict=True))
            equal = equal_columns(table, columns, values)
            await self._buffer(Shape("accumulate", table, columns, key, equal), values)

    async def delete_encoded(self, table: str, key: tuple[str, ...], rows: EncodedRows) -> None:
        if rows:
            await self._buffer(Shape("delete", table, key, key), list(zip(*rows, strict=True)))

    async def flush(self) -> None:
        """Executes the buffered writes; called before each read and before the commit."""
        if self._writes:
            sql, values = self._writes.take()
            with translated():
                await self.driver.execute(sql, *values)

    async def _write(self, shape: Shape, rows: Rows) -> None:
        await self._buffer(shape, shape.encoded(rows))

    async def _buffer(self, shape: Shape, columns: Sequence[Sequence[Any]]) -> None:
        if self._writes.would_mix(shape):
            await self.flush()
        self._writes.add(shape, columns)


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
