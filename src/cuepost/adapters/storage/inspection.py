"""Inspects a store without opening it as a service does, and without changing anything in it."""

import sqlite3
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.pooler import WrongPooler


class CannotInspect(Exception):
    """The store cannot be reached or read; the message says why."""


@dataclass(frozen=True, slots=True)
class Inspected:
    """`newest` is this version's revision; `clock_ahead` is how far the server's clock is ahead."""

    found: schema.Found
    newest: str
    clock_ahead: timedelta = timedelta(0)


def inspect_sqlite(path: Path) -> Inspected:
    try:
        connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)
        try:
            found = schema.found_on_sqlite(connection)
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CannotInspect(str(error)) from error
    return Inspected(found, schema.revisions()[-1])


async def inspect_postgres(url: str, now: datetime) -> Inspected:
    # Imported here, because an embedded store does not need it.
    import asyncpg  # noqa: PLC0415  # see above

    from cuepost.adapters.storage.postgres_connecting import connect  # noqa: PLC0415  # see above

    try:
        # Without named prepared statements, which not every pooler supports.
        connection = await connect(url, statement_cache_size=0)
        try:
            found = await schema.found_on_postgres(connection)
            theirs = await connection.fetchval("SELECT clock_timestamp()")
        finally:
            await connection.close()
    except (
        OSError,
        TimeoutError,
        WrongPooler,
        asyncpg.PostgresError,
        asyncpg.InterfaceError,
    ) as error:
        raise CannotInspect(str(error) or "no answer within 5 seconds") from error
    return Inspected(found, schema.revisions()[-1], theirs - now)
