"""How the records speak to PostgreSQL: people's queries through SQLAlchemy, many rows as arrays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import asyncpg
import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from cuepost.adapters.completion import cancelled_once
from cuepost.adapters.storage.postgres_writes import Shape, Writes
from cuepost.adapters.storage.session import Numbers, Rows
from cuepost.adapters.storage.statements import Prepared
from cuepost.ports.store import Contention, KeyTaken, StoreUnavailable

# The driver calls it its own mistake when it is asked for something on a connection that the
# server is just ending.
CONNECTION_ERRORS = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
DRIVER_ERRORS = (asyncpg.PostgresError, *CONNECTION_ERRORS)
EncodedRows: TypeAlias = Sequence[tuple[Any, ...]]
Driver: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Serialisation failure, deadlock, lock not available.
_CONTENTION = ("40001", "40P01", "55P03")
_UNIQUE_VIOLATION = "23505"
# Connection, idle in transaction too long, authorization, no such database, resources, operator.
_UNAVAILABLE = ("08", "25P03", "28", "3D", "53", "57")


class PostgresSession:
    dialect = "postgresql"

    def __init__(self, connection: AsyncConnection, driver: Driver) -> None:
        self.connection = connection
        self.driver = driver
        self.numbers = Numbers()
        self._writes = Writes()

    @property
    def unhurried(self) -> "PostgresSession":
        return self

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        with translated():
            return (await self._execute(statement)).all()

    async def run(self, statement: sa.Executable) -> int:
        with translated():
            return (await self._execute(statement)).rowcount

    async def fetch(self, statement: Prepared, **values: Any) -> Sequence[Any]:
        await self.flush()
        ready = statement.on(self.dialect)
        with translated():
            rows = await self.driver.fetch(ready.sql, *ready.encoded(values))
        return ready.decoded(rows)

    async def insert(self, table: sa.Table, rows: Rows) -> None:
        if rows:
            await self._write(Shape("insert", table, tuple(rows[0])), rows)

    async def update(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            await self._write(Shape("update", table, tuple(rows[0]), tuple(key)), rows)

    async def delete(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            await self._write(Shape("delete", table, tuple(key), tuple(key)), rows)

    async def insert_encoded(
        self, table: sa.Table, columns: tuple[str, ...], rows: EncodedRows
    ) -> None:
        if rows:
            await self._hold_back(Shape("insert", table, columns), list(zip(*rows, strict=True)))

    async def update_encoded(
        self, table: sa.Table, key: tuple[str, ...], changed: tuple[str, ...], rows: EncodedRows
    ) -> None:
        if rows:
            shape = Shape("update", table, (*changed, *key), key)
            await self._hold_back(shape, list(zip(*rows, strict=True)))

    async def delete_encoded(
        self, table: sa.Table, key: tuple[str, ...], rows: EncodedRows
    ) -> None:
        if rows:
            await self._hold_back(Shape("delete", table, key, key), list(zip(*rows, strict=True)))

    async def flush(self) -> None:
        """Write what is held back; before anything is read, and before the end."""
        if self._writes:
            sql, values = self._writes.take()
            with translated():
                await self.driver.execute(sql, *values)

    async def _write(self, shape: Shape, rows: Rows) -> None:
        await self._hold_back(shape, shape.encoded(rows))

    async def _hold_back(self, shape: Shape, columns: Sequence[Sequence[Any]]) -> None:
        if self._writes.would_mix(shape):
            await self.flush()
        self._writes.add(shape, columns)

    async def _execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        await self.flush()
        # SQLAlchemy gives up a connection whose statement was cancelled, and takes its time to.
        return await cancelled_once(self.connection.execute(statement))


@contextmanager
def translated() -> Iterator[None]:
    """Driver errors become the port's own; everything else passes."""
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise StoreUnavailable("no database connection became free in time") from error
    except (sa.exc.DBAPIError, asyncpg.PostgresError) as error:
        _raise_as_port_error(error)
        raise
    except asyncpg.DataError:
        raise
    except CONNECTION_ERRORS as error:
        raise StoreUnavailable(f"the database connection failed: {error}") from error


def _raise_as_port_error(error: Exception) -> None:
    cause = getattr(error, "orig", error)
    sqlstate = getattr(cause, "sqlstate", None)
    # What follows the first line may show the rows themselves.
    words = str(cause).partition("\n")[0]
    if sqlstate == _UNIQUE_VIOLATION:
        raise KeyTaken(words) from error
    if sqlstate in _CONTENTION:
        raise Contention(words) from error
    if sqlstate is None or sqlstate.startswith(_UNAVAILABLE):
        raise StoreUnavailable(f"the database is not available: {words}") from error
