"""Looks at a store from outside, without opening it and without changing anything in it."""

import asyncio
import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from cuepost.adapters.storage.schema import MIGRATIONS

CONNECT_SECONDS = 5.0


class CannotInspect(Exception):
    """The store cannot be reached or read; the message says why."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """`revision` is None where there is no schema; `clock_ahead` is that of a database server."""

    revision: str | None
    newest: str
    clock_ahead: timedelta = timedelta(0)


def inspect_sqlite(path: Path) -> Inspected:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        try:
            query = "SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'"
            known = connection.execute(query).fetchone()
            row = known and connection.execute("SELECT version_num FROM alembic_version").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CannotInspect(str(error)) from error
    return Inspected(row[0] if row else None, _newest())


async def inspect_postgres(url: str, now: datetime) -> Inspected:
    # Loaded here, because an embedded store has no use for it.
    import asyncpg  # noqa: PLC0415  # see above

    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await asyncpg.connect(url)
        try:
            known = await connection.fetchval("SELECT to_regclass('alembic_version') IS NOT NULL")
            query = "SELECT version_num FROM alembic_version"
            revision = await connection.fetchval(query) if known else None
            theirs = await connection.fetchval("SELECT clock_timestamp()")
        finally:
            await connection.close()
    except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise CannotInspect(str(error) or "no answer within 5 seconds") from error
    return Inspected(revision, _newest(), theirs - now)


def _newest() -> str:
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return max(file.name.partition("_")[0] for file in files)
