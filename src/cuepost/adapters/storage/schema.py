"""Which schema a database has, and which one this version needs."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

MIGRATIONS = Path(__file__).with_name("migrations")
VERSION = "alembic_version"
# History in tables of an older revision that is still to be moved.
TO_BE_MOVED = ("events", "deliveries", "attempts", "reports")
# Deliveries of an older revision that are still to be counted.
TO_BE_COUNTED = "old_counts"
_MARKERS = (VERSION, TO_BE_COUNTED, *(f"old_{table}" for table in TO_BE_MOVED))
# Older schemas lack the second column.
VERSION_ROW = f"SELECT * FROM {VERSION}"
# Returns the same two columns before and after an upgrade, because connections cache the plan.
_VERSION_ON_POSTGRES = (
    f"SELECT version_num, to_jsonb(v) ->> 'oldest_code' AS oldest_code FROM {VERSION} AS v"
)
_ON_SQLITE = f"SELECT name FROM sqlite_master WHERE type = 'table' AND name IN {_MARKERS}"
_ON_POSTGRES = (
    f"SELECT relname FROM pg_class WHERE relname IN {_MARKERS} AND pg_table_is_visible(oid)"
)


class WrongSchema(Exception):
    """The database's schema is not the one that this version of cuepost works with."""


@dataclass(frozen=True, slots=True)
class Found:
    """The revision of a database, None if it has no schema yet.

    Versions whose newest revision is `oldest_code` or later can run on the schema.
    """

    revision: str | None
    oldest_code: str | None = None
    is_interrupted: bool = False

    @property
    def is_newer(self) -> bool:
        return self.revision is not None and self.revision not in revisions()

    @property
    def is_usable(self) -> bool:
        """Whether it is this version's schema, or a newer one that this version can run on."""
        is_own = self.revision == revisions()[-1]
        return (is_own or self._is_compatible) and not self.is_interrupted

    @property
    def _is_compatible(self) -> bool:
        is_told = self.oldest_code is not None and self.oldest_code <= revisions()[-1]
        return self.is_newer and is_told

    def require_compatible(self) -> None:
        """Older schemas pass, because they can be upgraded."""
        if self.is_newer and not self._is_compatible:
            raise WrongSchema(
                f"The database's schema ({self.revision}) was made by a newer cuepost; "
                "start that version, or one newer still."
            )

    def require_usable(self) -> None:
        if self.revision is None:
            raise WrongSchema("The database has no cuepost schema yet; run 'cuepost migrate'.")
        self.require_compatible()
        if self.revision < revisions()[-1]:
            raise WrongSchema(
                f"The database's schema is older ({self.revision}); run 'cuepost migrate'."
            )
        if self.is_interrupted:
            raise WrongSchema("An upgrade of the database was interrupted; run 'cuepost migrate'.")


def found(version: Sequence[str | None], *, is_interrupted: bool = False) -> Found:
    """`version` is the row of the version table, or empty."""
    revision, oldest_code = (*version, None, None)[:2]
    return Found(revision, oldest_code, is_interrupted)


def found_on_sqlite(driver: sqlite3.Connection) -> Found:
    names = {name for (name,) in driver.execute(_ON_SQLITE)}
    row = driver.execute(VERSION_ROW).fetchone() if VERSION in names else None
    return found(row or (), is_interrupted=bool(names - {VERSION}))


async def found_on_postgres(driver: Any) -> Found:
    """`driver` is a connection of asyncpg, which an embedded store does not load."""
    names = {name for (name,) in await driver.fetch(_ON_POSTGRES)}
    row = await driver.fetchrow(_VERSION_ON_POSTGRES) if VERSION in names else None
    return found(row or (), is_interrupted=bool(names - {VERSION}))


@cache
def revisions() -> tuple[str, ...]:
    """Oldest first: each file is named after its revision."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))
