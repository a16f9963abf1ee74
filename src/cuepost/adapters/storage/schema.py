"""Which schema a database has, which one this version needs, and how to get there."""

import logging
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TypeVar

import sqlalchemy as sa

from cuepost.adapters.storage.migrations import old_history

T = TypeVar("T")
log = logging.getLogger("cuepost.store")

SchemaWork = Callable[[sa.Connection], bool]

MIGRATIONS = Path(__file__).with_name("migrations")
# Any constant will do, as long as every process takes the same one.
MIGRATION_LOCK = 0x6375_6571


class WrongSchema(Exception):
    """The database's schema is not the one that this version of cuepost works with."""


def require_current(connection: sa.Connection) -> bool:
    found = _found(connection)
    if found is None:
        raise WrongSchema("The database has no cuepost schema yet; run 'cuepost migrate'.")
    if found != _revisions()[-1]:
        _require_known(found)
        raise WrongSchema(f"The database's schema is older ({found}); run 'cuepost migrate'.")
    if old_history.is_left(connection):
        raise WrongSchema("An upgrade of the database was interrupted; run 'cuepost migrate'.")
    return False


def upgrade(connection: sa.Connection) -> bool:
    """Bring it to the newest revision; False when it is there already."""
    _take_turn(connection)
    found = _found(connection)
    if found == _revisions()[-1]:
        return False
    if found is not None:
        _require_known(found)
    migrate(connection)
    return True


def move_some(connection: sa.Connection) -> str | None:
    """Some of the history of an older revision: how far that got, or None when all of it is moved.

    Nobody may open the store before.
    """
    _take_turn(connection)
    return old_history.move_some(connection)


def bring_up_to_date(connection: sa.Connection) -> bool:
    """For the embedded store: a crash leaves the old schema whole, or rows still to be moved."""
    changed = _committed(connection, upgrade)
    while told := _committed(connection, move_some):
        log.info("event=history_moved %s", told)
        changed = True
    return changed


def _take_turn(connection: sa.Connection) -> None:
    """Two may migrate at once; the second waits until the first has committed."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")


def _committed(connection: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        done = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    return done


def _require_known(revision: str) -> None:
    if revision not in _revisions():
        raise WrongSchema(
            f"The database's schema ({revision}) was made by a newer cuepost; "
            "start that version, or one newer still."
        )


def _found(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.scalar(sa.text("SELECT version_num FROM alembic_version"))
    return found


@cache
def _revisions() -> tuple[str, ...]:
    """Oldest first: each file is named after its revision."""
    files = (MIGRATIONS / "versions").glob("[0-9]*.py")
    return tuple(sorted(file.name.partition("_")[0] for file in files))


def migrate(connection: sa.Connection, to: str = "head") -> None:
    # Loaded here, because a start hardly ever needs it.
    from alembic import command  # noqa: PLC0415  # see above
    from alembic.config import Config  # noqa: PLC0415  # see above

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)
