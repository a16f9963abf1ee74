"""Which schema a database has, which one this version needs, and how to get there."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import sqlalchemy as sa

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
    return False


def upgrade(connection: sa.Connection) -> bool:
    """Bring it to the newest revision; False when it is there already."""
    if connection.dialect.name == "postgresql":
        # Two may migrate at once; the second waits until the first has committed.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    found = _found(connection)
    if found == _revisions()[-1]:
        return False
    if found is not None:
        _require_known(found)
    migrate(connection)
    return True


def bring_up_to_date(connection: sa.Connection) -> bool:
    """For the embedded store: one transaction, so that a crash leaves the old schema whole."""
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        changed = upgrade(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    return changed


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
