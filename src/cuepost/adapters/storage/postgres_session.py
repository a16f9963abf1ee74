"""How the records speak to PostgreSQL: people's queries through SQLAlchemy, many rows as arrays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, TypeAlias

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection

from cuepost.adapters.storage.completion import cancelled_once
from cuepost.adapters.storage.session import Rows
from cuepost.adapters.storage.statements import Prepared
from cuepost.ports.store import Contention, StoreUnavailable

# The driver calls it its own mistake when it is asked for something on a connection that the
# server is just ending.
CONNECTION_ERRORS = (asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)
DRIVER_ERRORS = (asyncpg.PostgresError, *CONNECTION_ERRORS)
Driver: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

# Serialisation failure, deadlock, unique violation, lock not available.
_CONTENTION = ("40001", "40P01", "23505", "55P03")
# Connection, idle in transaction too long, authorization, no such database, resources, operator.
_UNAVAILABLE = ("08", "25P03", "28", "3D", "53", "57")


class PostgresSession:
    dialect = "postgresql"

    def __init__(self, connection: AsyncConnection, driver: Driver) -> None:
        self._connection = connection
        self._driver = driver

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
        ready = statement.on(self.dialect)
        with translated():
            return await self._driver.fetch(ready.sql, *ready.encoded(values))

    async def insert(self, table: sa.Table, rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            with translated():
                await self._driver.execute(_insert_sql(table, columns), *_arrays(columns, rows))

    async def update(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            sql = _update_sql(table, tuple(key), columns)
            with translated():
                await self._driver.execute(sql, *_arrays(columns, rows))

    async def delete(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            sql = _delete_sql(table, tuple(key))
            with translated():
                await self._driver.execute(sql, *_arrays(key, rows))

    async def _execute(self, statement: sa.Executable) -> sa.CursorResult[Any]:
        # SQLAlchemy gives up a connection whose statement was cancelled, and takes its time to.
        return await cancelled_once(self._connection.execute(statement))


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
    if sqlstate in _CONTENTION:
        raise Contention(words) from error
    if sqlstate is None or sqlstate.startswith(_UNAVAILABLE):
        raise StoreUnavailable(f"the database is not available: {words}") from error


@cache
def _insert_sql(table: sa.Table, columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    return f"INSERT INTO {table.name} ({names}) SELECT * FROM unnest({_typed(table, columns)})"


@cache
def _update_sql(table: sa.Table, key: tuple[str, ...], columns: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in columns)
    changes = ", ".join(f'"{name}" = new."{name}"' for name in columns if name not in key)
    match = " AND ".join(f'{table.name}."{name}" = new."{name}"' for name in key)
    source = f"unnest({_typed(table, columns)}) AS new({names})"
    return f"UPDATE {table.name} SET {changes} FROM {source} WHERE {match}"


@cache
def _delete_sql(table: sa.Table, key: tuple[str, ...]) -> str:
    names = ", ".join(f'"{name}"' for name in key)
    match = " AND ".join(f'{table.name}."{name}" = gone."{name}"' for name in key)
    source = f"unnest({_typed(table, key)}) AS gone({names})"
    return f"DELETE FROM {table.name} USING {source} WHERE {match}"


def _typed(table: sa.Table, columns: Sequence[str]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    kinds = (table.c[name].type.compile(dialect) for name in columns)
    return ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, start=1))


def _arrays(columns: Sequence[str], rows: Rows) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in columns]
