"""Migrates a database to the newest schema. Imported only if needed, because of SQLAlchemy."""

import logging
import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.script import Script, ScriptDirectory

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.migrations import old_counts, old_history

T = TypeVar("T")
log = logging.getLogger("cuepost.store")


def upgrade_sqlite(driver: sqlite3.Connection) -> None:
    """A crash leaves the old schema intact, or rows that are still to be moved."""
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: driver,
        hide_parameters=True,
        isolation_level="AUTOCOMMIT",
        poolclass=sa.StaticPool,
    )
    # The engine is not disposed of, which would close the connection.
    with engine.connect() as connection:
        _committed(connection, upgrade)
        while progress := _committed(connection, move_some):
            log.info("event=history_moved %s", progress)


def upgrade(connection: sa.Connection) -> bool:
    """Migrates to the newest revision; False if the database already has it."""
    is_needed = needs_upgrade(connection)
    if is_needed:
        migrate(connection)
    return is_needed


def needs_upgrade(connection: sa.Connection, *, with_downtime: bool = True) -> bool:
    found = schema.found(_version(connection))
    found.require_compatible()
    if found.is_newer or found.revision == schema.revisions()[-1]:
        return False
    if found.revision is not None and not with_downtime:
        _require_online(found.revision)
    return True


def move_some(connection: sa.Connection) -> str | None:
    """Some of the history of an older revision: how far that got, or None when all of it is moved
    and counted.

    The store must not be opened before that.
    """
    return old_history.move_some(connection) or old_counts.count_all(connection)


def migrate(connection: sa.Connection, to: str = "head") -> None:
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, to)


def oldest_code(migration: Script) -> str:
    """The oldest version that can run on the schema it leaves, named by its newest revision."""
    # Migrations from before this was stated run only with the version that introduced them.
    stated: str = getattr(migration.module, "oldest_code", migration.revision)
    return stated


def _require_online(revision: str) -> None:
    pending = ScriptDirectory.from_config(_config()).iterate_revisions("head", revision)
    needed = max(oldest_code(migration) for migration in pending)
    if revision < needed:
        raise schema.WrongSchema(
            f"Processes of the version that the database's schema is of ({revision}) could not go "
            "on after this upgrade; nothing was changed. Stop all processes and run "
            "'cuepost migrate --with-downtime', or upgrade through each version in between."
        )


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
    return config


def _committed(connection: sa.Connection, work: Callable[[sa.Connection], T]) -> T:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        done = work(connection)
        connection.exec_driver_sql("COMMIT")
    except BaseException:
        connection.exec_driver_sql("ROLLBACK")
        raise
    return done


def _version(connection: sa.Connection) -> Sequence[str | None]:
    if not sa.inspect(connection).has_table(schema.VERSION):
        return ()
    row = connection.exec_driver_sql(schema.VERSION_ROW).one_or_none()
    return row or ()
