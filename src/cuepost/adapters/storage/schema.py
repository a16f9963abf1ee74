"""Which schema a database has, which one this version needs, and how to get there."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

SchemaWork = Callable[[sa.Connection], bool]

MIGRATIONS = Path(__file__).with_name("migrations")
# Any constant will do, as long as every process takes the same one.
MIGRATION_LOCK = 0x6375_6571


class WrongSchema(Exception):
    """The database's schema is not the one that this version of cuepost works with."""


def require_current(connection: sa.Connection) -> bool:
    found, scripts = _found(connection), _scripts(MIGRATIONS)
    if found is None:
        raise WrongSchema("The database has no cuepost schema yet; run 'cuepost migrate'.")
    if found != scripts.get_current_head():
        _require_known(found, scripts)
        raise WrongSchema(f"The database's schema is older ({found}); run 'cuepost migrate'.")
    return False


def upgrade(connection: sa.Connection) -> bool:
    """Bring it to the newest revision; False when it is there already."""
    if connection.dialect.name == "postgresql":
        # Two may migrate at once; the second waits until the first has committed.
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")
    found, scripts = _found(connection), _scripts(MIGRATIONS)
    if found == scripts.get_current_head():
        return False
    if found is not None:
        _require_known(found, scripts)
    config = _config(MIGRATIONS)
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
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


def _require_known(revision: str, scripts: ScriptDirectory) -> None:
    if revision not in {script.revision for script in scripts.walk_revisions()}:
        raise WrongSchema(
            f"The database's schema ({revision}) was made by a newer cuepost; "
            "start that version, or one newer still."
        )


def _found(connection: sa.Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


@cache
def _scripts(location: Path) -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(location))


def _config(location: Path) -> Config:
    config = Config()
    config.set_main_option("script_location", str(location).replace("%", "%%"))
    return config
