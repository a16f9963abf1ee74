"""Which schema a database has, and which one this version needs."""

import sqlite3
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MIGRATIONS = Path(__file__).with_name("migrations")
VERSION = "alembic_version"
# History in tables of an older revision that is still to be moved.
TO_BE_MOVED = ("events", "deliveries", "attempts", "reports")
_TOLD_BY = (VERSION, *(f"old_{table}" for table in TO_BE_MOVED))
_REVISION = f"SELECT version_num FROM {VERSION}"
_ON_SQLITE = f"SELECT name FROM sqlite_master WHERE type = 'table' AND name IN {_TOLD_BY}"
_ON_POSTGRES = (
    f"SELECT relname FROM pg_class WHERE relname IN {_TOLD_BY} AND pg_table_is_visible(oid)"
)


class WrongSchema(Exception):
    """The database's schema is not the one that this version of cuepost works with."""


@dataclass(frozen=True, slots=True)
class Found:
    """The revision of a database, None where it has no schema yet."""

    revision: str | None
    is_interrupted: bool = False

    @property
    def is_current(self) -> bool:
        return self.revision == revisions()[-1] and not self.is_interrupted

    def require_known(self) -> None:
        if self.revision is not None and self.revision not in revisions():
            raise WrongSchema(
                f"The database's schema ({self.revision}) was made by a newer cuepost; "
                "start that version, or one newer still."
            )

    def require_current(self) -> None:
        if self.revision is None:
            raise WrongSchema("The database has no cuepost schema yet; run 'cuepost migrate'.")
        self.require_known()
        if self.revision != revisions()[-1]:
            raise WrongSchema(
                f"The database's schema is older ({self.revision}); run 'cuepost migrate'."
            )
        if self.is_interrupted:
            raise WrongSchema("An upgrade of the database was interrupted; run 'cuepost migrate'.")


def found_on_sqlite(driver: sqlite3.Connection) -> Found:
    names = {name for (name,) in driver.execute(_ON_SQLITE)}
    row = driver.execute(_REVISION).fetchone() if VERSION in names else None
    return Found(row[0] if row else None, bool(names - {VERSION}))


async def found_on_postgres(driver: Any) -> Found:
    """`driver` is a connection of asyncpg, which an embedded store does not load."""
    names = {name for (name,) in await driver.fetch(_ON_POSTGRES)}
    revision = await driver.fetchval(_REVISION) if VERSION in names else None
    return Found(revision, bool(names - {VERSION}))


@cache
def revisions() -> tuple[str, ...]:
    """Oldest first: each file is named after its revision."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))
