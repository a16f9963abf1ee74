"""The inbox in PostgreSQL, on several machines; needs `cuepost-receiver[postgres]`."""

import re
from collections.abc import Mapping
from typing import Any

import psycopg

from cuepost_receiver.stores.sql_store import SqlStore

SCHEMA = """
CREATE TABLE IF NOT EXISTS cuepost_inbox (
    event_id text PRIMARY KEY,
    body bytea NOT NULL,
    state text NOT NULL,
    attempts integer NOT NULL,
    received_at double precision NOT NULL,
    due_at double precision,
    lease text,
    error text,
    ended_at double precision
);
CREATE INDEX IF NOT EXISTS cuepost_inbox_due ON cuepost_inbox (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX IF NOT EXISTS cuepost_inbox_ended ON cuepost_inbox (state, ended_at);
"""
# Concurrent CREATE TABLE IF NOT EXISTS can fail; the lock serialises them.
SCHEMA_LOCK = "SELECT pg_advisory_xact_lock(hashtext('cuepost_inbox'))"
_PARAMETER = re.compile(r":(\w+)")

PgConnection = psycopg.Connection[tuple[Any, ...]]


class PostgresStore(SqlStore[PgConnection]):
    """`url` is a connection string of libpq; broken connections are replaced."""

    locking = "FOR UPDATE SKIP LOCKED"

    def __init__(self, url: str) -> None:
        super().__init__()
        self._url = url

    def _rows(self, statement: str, **parameters: Any) -> list[Any]:
        try:
            return super()._rows(statement, **parameters)
        except psycopg.OperationalError:
            # A server restart breaks an idle connection, which is noticed only when it is used.
            return super()._rows(statement, **parameters)

    def _open(self) -> PgConnection:
        connection = psycopg.connect(self._url, autocommit=True)
        try:
            with connection.transaction():
                connection.execute(SCHEMA_LOCK)
                connection.execute(SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection

    def _execute(
        self, connection: PgConnection, statement: str, parameters: Mapping[str, Any]
    ) -> list[Any]:
        named = _PARAMETER.sub(r"%(\1)s", statement)
        try:
            return connection.execute(named.encode(), parameters).fetchall()
        except psycopg.OperationalError:
            # The next call opens a new connection.
            connection.close()
            self._drop()
            raise

    def _close(self, connection: PgConnection) -> None:
        connection.close()
