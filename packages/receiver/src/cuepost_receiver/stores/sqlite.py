"""The inbox in an SQLite file: for one machine, with any number of processes and threads."""

import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cuepost_receiver.stores.sql_store import SqlStore

BUSY_SECONDS = 10.0
POLL_SECONDS = 0.01
SCHEMA = """
CREATE TABLE IF NOT EXISTS cuepost_inbox (
    event_id TEXT PRIMARY KEY,
    body BLOB NOT NULL,
    state TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    received_at REAL NOT NULL,
    due_at REAL,
    lease TEXT,
    error TEXT,
    ended_at REAL
);
CREATE INDEX IF NOT EXISTS cuepost_inbox_due ON cuepost_inbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS cuepost_inbox_ended ON cuepost_inbox (state, ended_at);
"""


class SqliteStore(SqlStore[sqlite3.Connection]):
    """Needs SQLite 3.35 or newer, which Python 3.11 includes; not for network file systems."""

    def __init__(self, path: str | Path) -> None:
        super().__init__()
        self.path = Path(path)

    def _open(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            _use_write_ahead_log(connection)
            # An acknowledged event must survive a power failure.
            connection.execute("PRAGMA synchronous = FULL")
            connection.executescript(SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _execute(
        self, connection: sqlite3.Connection, statement: str, parameters: Mapping[str, Any]
    ) -> list[Any]:
        return connection.execute(statement, parameters).fetchall()

    def _close(self, connection: sqlite3.Connection) -> None:
        connection.close()


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """While another process makes the same change to a new file, SQLite refuses without waiting."""
    latest = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() >= latest:
                raise
            time.sleep(POLL_SECONDS)
        else:
            return
