"""Runs SQLAlchemy's statements on a session of the store, which itself speaks plain SQL.

Tests look into tables in ways that the service has no use for, and the tables are described there.
"""

import json
from collections import namedtuple
from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.sql.compiler import SQLCompiler

from cuepost.adapters.storage.postgres_session import PostgresSession, translated
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sqlite_session import SqliteSession

_DIALECTS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+asyncpg"}


async def all_rows(session: StoreSession, statement: sa.Executable) -> list[Any]:
    """Rows with their columns by position and by name."""
    compiled, text, values = _compiled(session.dialect, statement)
    engine = _unwrapped(session)
    if isinstance(engine, PostgresSession):
        await engine.flush()
        with translated():
            rows: Sequence[Any] = await engine.driver.fetch(text, *values)
        names = list(rows[0].keys()) if rows else []
    else:
        driver = engine.driver
        cursor = await engine.in_thread(lambda: driver.execute(text, values))
        names = [name for name, *_ in cursor.description]
        rows = await engine.in_thread(cursor.fetchall)
    # The names are known only here.
    kind: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]
    readers = _readers(compiled, len(names))
    return [kind(*(read(value) for read, value in zip(readers, row, strict=True))) for row in rows]


async def run(session: StoreSession, statement: sa.Executable) -> int:
    """How many rows it touched."""
    _, text, values = _compiled(session.dialect, statement)
    engine = _unwrapped(session)
    if isinstance(engine, PostgresSession):
        await engine.flush()
        with translated():
            reported = await engine.driver.execute(text, *values)
        count = reported.rpartition(" ")[2]
        return int(count) if count.isdigit() else -1
    driver = engine.driver
    return await engine.in_thread(lambda: driver.execute(text, values).rowcount)


def _unwrapped(session: Any) -> PostgresSession | SqliteSession:
    """Bypasses the watch: what a test looks at does not count as work of the store."""
    while not isinstance(session, PostgresSession | SqliteSession):
        session = session.inner
    return session


def upsert(session: StoreSession, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that knows `on_conflict_…`; both engines spell it alike."""
    return postgresql.insert(table) if session.dialect == "postgresql" else sqlite.insert(table)


def _compiled(dialect_name: str, statement: sa.Executable) -> tuple[SQLCompiler, str, list[Any]]:
    """With the text and the values in which lists are spelled out."""
    assert isinstance(statement, sa.ClauseElement)
    compiled = statement.compile(dialect=_dialect(dialect_name))
    assert isinstance(compiled, SQLCompiler)
    state = compiled.construct_expanded_state()
    processors: Any = {**compiled._bind_processors, **state.processors}
    values = [
        _written(processors.get(name), state.parameters[name]) for name in state.positiontup or ()
    ]
    return compiled, state.statement, values


def _written(processor: Any, value: Any) -> Any:
    return value if processor is None else processor(value)


def _readers(compiled: SQLCompiler, width: int) -> list[Any]:
    entries = compiled._result_columns or []
    readers = [_reader(entry.type, compiled.dialect) for entry in entries]
    return readers if len(readers) == width else [_same] * width


def _reader(kind: Any, dialect: sa.Dialect) -> Any:
    if dialect.name == "postgresql" and not isinstance(kind, sa.types.TypeDecorator):
        # SQLAlchemy leaves this to the connections that it makes itself.
        return json.loads if isinstance(kind, sa.JSON) else _same
    return kind._cached_result_processor(dialect, None) or _same


def _same(value: Any) -> Any:
    return value


@cache
def _dialect(name: str) -> sa.Dialect:
    kind: Any = sa.make_url(f"{_DIALECTS[name]}://").get_dialect()
    made: sa.Dialect = kind(dbapi=kind.import_dbapi())
    return made
