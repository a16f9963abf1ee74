"""Brings a database to the newest schema. Loaded only where that is needed, with SQLAlchemy."""

import logging
import sqlite3
from collections.abc import Callable
from typing import TypeVar

import sqlalchemy as sa
from alembic import command
from alembic.config import Config

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.migrations import old_history

T = TypeVar("T")
log = logging.getLogger("cuepost.store")

# Any constant will do, as long as every process takes the same one.
MIGRATION_LOCK = 0x6375_6571


def upgrade_sqlite(driver: sqlite3.Connection) -> None:
    """A crash leaves the old schema whole, or rows that are still to be moved."""
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
        while told := _committed(connection, move_some):
            log.info("event=history_moved %s", told)


def upgrade(connection: sa.Connection) -> bool:
    """Bring it to the newest revision; False when it is there already."""
    _take_turn(connection)
    found = schema.Found(_revision(connection))
    if found.is_current:
        return False
    found.require_known()
    migrate(connection)
    return True


def move_some(connection: sa.Connection) -> str | None:
    """Some of the history of an older revision: how far that got, or None when all of it is moved.

    Nobody may open the store before.
    """
    _take_turn(connection)
    return old_history.move_some(connection)


def migrate(connection: sa.Connection, to: str = "head") -> None:
    config = Config()
    config.set_main_option("script_location", str(schema.MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, to)


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


def _revision(connection: sa.Connection) -> str | None:
    if not sa.inspect(connection).has_table(schema.VERSION):
        return None
    found: str | None = connection.scalar(sa.text(f"SELECT version_num FROM {schema.VERSION}"))
    return found
