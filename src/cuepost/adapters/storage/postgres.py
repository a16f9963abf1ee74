"""The store for many processes and machines: PostgreSQL through asyncpg.

SQLAlchemy runs in autocommit and this module opens the transactions itself, so that the hot path
can speak to the driver directly, with whole columns as arrays, inside the same transaction.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import asyncpg
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine

from cuepost.adapters.storage import partitions, schema
from cuepost.adapters.storage.session import Rows
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.store import Contention, StoreUnavailable, Transaction

POOL_SIZE = 10
POOL_OVERFLOW = 10
POOL_PATIENCE_SECONDS = 10
CONNECT_PATIENCE_SECONDS = 5
_CONTENTION = ("40001", "40P01", "23505", "55P03")
_UNAVAILABLE_CLASSES = ("08", "57", "53")


class PostgresStore:
    def __init__(self, url: str) -> None:
        self._engine = create_async_engine(
            sa.make_url(url).set(drivername="postgresql+asyncpg"),
            isolation_level="AUTOCOMMIT",
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=POOL_PATIENCE_SECONDS,
            connect_args={"timeout": CONNECT_PATIENCE_SECONDS},
        )

    async def open(self, now: datetime) -> None:
        """Refuse a schema that is not this version's, and say what to do about it."""
        await self._with_schema(schema.require_current)
        await self.prepare_days(now)

    async def migrate(self, now: datetime) -> bool:
        """True when something had to be done."""
        changed = await self._with_schema(schema.upgrade)
        await self.prepare_days(now)
        return changed

    async def close(self) -> None:
        await self._engine.dispose()

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        with _translated():
            async with self._engine.connect() as connection:
                driver = await _driver_of(connection)
                async with driver.transaction():
                    yield RecordsTransaction(PostgresSession(connection, driver))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        with _translated():
            async with self._engine.connect() as connection:
                driver = await _driver_of(connection)
                async with driver.transaction(isolation="repeatable_read", readonly=True):
                    yield RecordsTransaction(PostgresSession(connection, driver))

    async def check(self) -> None:
        try:
            await self._with_schema(schema.require_current)
        except schema.WrongSchema as error:
            raise StoreUnavailable(str(error)) from error

    async def prepare_days(self, now: datetime) -> None:
        with _translated():
            async with self._engine.connect() as connection:
                driver = await _driver_of(connection)
                async with driver.transaction():
                    await driver.execute("SELECT pg_advisory_xact_lock($1)", partitions.LOCK)
                    for statement in partitions.missing(
                        await _existing_partitions(driver), now, timedelta(days=14)
                    ):
                        await driver.execute(statement)

    async def _with_schema(self, work: schema.SchemaWork) -> bool:
        with _translated():
            async with self._engine.connect() as connection:
                await connection.execution_options(isolation_level="READ COMMITTED")
                changed = await connection.run_sync(work)
                await connection.commit()
                return changed


class PostgresSession:
    dialect = "postgresql"

    def __init__(self, connection: AsyncConnection, driver: "asyncpg.Connection[Any]") -> None:
        self._connection = connection
        self._driver = driver

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return (await self._connection.execute(statement)).all()

    async def run(self, statement: sa.Executable) -> int:
        return (await self._connection.execute(statement)).rowcount

    async def insert(self, table: sa.Table, rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            await self._driver.execute(_insert_sql(table, columns), *_arrays(columns, rows))

    async def update(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        if rows:
            columns = tuple(rows[0])
            sql = _update_sql(table, tuple(key), columns)
            await self._driver.execute(sql, *_arrays(columns, rows))


async def _driver_of(connection: AsyncConnection) -> "asyncpg.Connection[Any]":
    raw = await connection.get_raw_connection()
    driver = raw.driver_connection
    assert isinstance(driver, asyncpg.Connection)
    return driver


async def _existing_partitions(driver: "asyncpg.Connection[Any]") -> frozenset[str]:
    rows = await driver.fetch(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        "JOIN pg_class p ON p.oid = i.inhparent "
        "WHERE p.relname = ANY($1) AND p.relnamespace = current_schema()::regnamespace",
        [table.name for table in partitions.PARTITIONED],
    )
    return frozenset(row["relname"] for row in rows)


@contextmanager
def _translated() -> Iterator[None]:
    """Driver errors become the port's own; everything else passes."""
    try:
        yield
    except sa.exc.TimeoutError as error:
        raise StoreUnavailable("no database connection became free in time") from error
    except sa.exc.DBAPIError as error:
        raise _port_error(error, getattr(error.orig, "sqlstate", None)) from error
    except asyncpg.PostgresError as error:
        raise _port_error(error, error.sqlstate) from error
    except (asyncpg.InterfaceError, OSError, TimeoutError) as error:
        raise StoreUnavailable(f"the database connection failed: {error}") from error


def _port_error(error: Exception, sqlstate: str | None) -> Exception:
    if sqlstate in _CONTENTION:
        return Contention(str(error))
    if sqlstate is None or sqlstate.startswith(_UNAVAILABLE_CLASSES):
        return StoreUnavailable(f"the database is not available: {error}")
    return error


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


def _typed(table: sa.Table, columns: Sequence[str]) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    kinds = (table.c[name].type.compile(dialect) for name in columns)
    return ", ".join(f"${place}::{kind}[]" for place, kind in enumerate(kinds, start=1))


def _arrays(columns: Sequence[str], rows: Rows) -> list[list[Any]]:
    return [[row[name] for row in rows] for name in columns]
