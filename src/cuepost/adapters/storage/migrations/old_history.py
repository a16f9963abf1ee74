"""Moves history from the tables of revision 0006 into those of revision 0007, some rows at a time.

Rows in an old table are still to be moved, so an interrupted upgrade continues where it stopped.
"""

import sqlalchemy as sa

from cuepost.adapters.storage.migrations import old_columns as old
from cuepost.adapters.storage.partitions import of_day
from cuepost.adapters.storage.schema import TO_BE_MOVED

ROWS_AT_ONCE = 10_000
# CROSS JOIN makes SQLite look up the account and the endpoint of each old row, in this order.
_OWNER = " CROSS JOIN accounts"
_RECEIVER = " CROSS JOIN endpoints"
_IS_OWNER = "accounts.id = old.account_id"
_IS_RECEIVER = "endpoints.account_id = old.account_id AND endpoints.id = old.webhook_id"
_SOURCES = {
    "events": _OWNER,
    "deliveries": _OWNER + _RECEIVER,
    "attempts": _OWNER,
    "reports": _OWNER,
}
# A live delivery of a deleted endpoint has left the queue, but its history row still has no final
# status. It is not moved, and neither are its attempts: no query would find them.
_MOVED = {
    "events": _IS_OWNER,
    "deliveries": f"{_IS_OWNER} AND {_IS_RECEIVER} AND old.final_status IS NOT NULL",
    "attempts": _IS_OWNER
    + " AND ("
    + " OR ".join(
        f"EXISTS (SELECT 1 FROM {table} WHERE {table}.account = accounts.number"
        f" AND {table}.id = old.delivery_id)"
        for table in ("deliveries", "queue")
    )
    + ")",
    "reports": _IS_OWNER,
}


def put_aside(connection: sa.Connection) -> None:
    """Renames the old tables; a live delivery keeps its row in the old history until it moves."""
    inspector = sa.inspect(connection)
    for table in (*TO_BE_MOVED, "queue"):
        for index in inspector.get_indexes(table):
            connection.exec_driver_sql(f'DROP INDEX "{index["name"]}"')
        if connection.dialect.name == "postgresql":
            for name in _constraints(connection, table):
                connection.exec_driver_sql(
                    f'ALTER TABLE {table} RENAME CONSTRAINT "{name}" TO "old_{name}"'
                )
            for partition in _partitions(connection, table):
                connection.exec_driver_sql(f"ALTER TABLE {partition} RENAME TO old_{partition}")
        connection.exec_driver_sql(f"ALTER TABLE {table} RENAME TO old_{table}")


def move_queue(connection: sa.Connection) -> None:
    """Moves all live deliveries; leases of old workers end like those of dead workers."""
    state = old.code("old.state", old.STATUSES)
    columns = old.ACCOUNT | old.ENDPOINT
    columns |= {"id": "old.delivery_id"}
    columns |= old.as_they_are(
        "event_id", "due_at", "budget", "attempts_made", "attempt_count", "stop_reason"
    )
    columns |= {
        "stop_reason": old.code("old.stop_reason", old.CANCEL_REASONS),
        "trigger": old.code('old."trigger"', old.TRIGGERS),
        "status": state,
        "worker": "old.lease_token",
        "project_id": "was.project_id",
        "event_type": old.code("was.event_type", old.EVENT_TYPES),
        "delivered_at": "was.delivered_at",
    }
    names = ", ".join(f'"{name}"' for name in columns)
    connection.exec_driver_sql(
        f"INSERT INTO queue ({names}) SELECT {', '.join(columns.values())} FROM old_queue AS old"
        f"{_OWNER}{_RECEIVER} CROSS JOIN old_deliveries AS was WHERE {_IS_OWNER}"
        f" AND {_IS_RECEIVER} AND was.account_id = old.account_id AND was.id = old.delivery_id"
    )
    connection.exec_driver_sql("DROP TABLE old_queue")


def drop_empty(connection: sa.Connection) -> None:
    """A new store has nothing to move."""
    for table in TO_BE_MOVED:
        if connection.exec_driver_sql(f"SELECT 1 FROM old_{table} LIMIT 1").first() is None:
            connection.exec_driver_sql(f"DROP TABLE old_{table}")


def move_some(connection: sa.Connection) -> str | None:
    """Moves a batch and returns the progress; the caller commits it and repeats until None."""
    inspector = sa.inspect(connection)
    for table in TO_BE_MOVED:
        if inspector.has_table(f"old_{table}"):
            move = _on_postgres if connection.dialect.name == "postgresql" else _on_sqlite
            return move(connection, table)
    return None


def _on_sqlite(connection: sa.Connection, table: str) -> str:
    """Moves some rows in the order of their key, and stores the last key as the position."""
    key = "old.account_id, old.id" if table == "deliveries" else "old.rowid"
    connection.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS old_position (name TEXT PRIMARY KEY, rows INTEGER, a, b)"
    )
    found = connection.exec_driver_sql(
        "SELECT rows, a, b FROM old_position WHERE name = ?", (table,)
    ).first()
    moved, *last = found or (0, b"", b"")
    width = key.count(",") + 1
    behind = (f"({key}) > ({', '.join('?' * width)})", last[:width]) if found else ("true", [])
    bound = connection.exec_driver_sql(
        f"SELECT {key} FROM old_{table} AS old WHERE {behind[0]} ORDER BY {key} "
        f"LIMIT 1 OFFSET {ROWS_AT_ONCE - 1}",
        tuple(behind[1]),
    ).first()
    upto = (f"({key}) <= ({', '.join('?' * width)})", list(bound)) if bound else ("true", [])
    connection.exec_driver_sql(
        _insertion(table, f"old_{table}", f"{behind[0]} AND {upto[0]}"),
        (*behind[1], *upto[1]),
    )
    if bound is None:
        connection.exec_driver_sql(f"DROP TABLE old_{table}")
        connection.exec_driver_sql("DELETE FROM old_position WHERE name = ?", (table,))
        if not any(sa.inspect(connection).has_table(f"old_{each}") for each in TO_BE_MOVED):
            connection.exec_driver_sql("DROP TABLE old_position")
        return f"table={table} state=done"
    moved += ROWS_AT_ONCE
    connection.exec_driver_sql(
        "INSERT OR REPLACE INTO old_position VALUES (?, ?, ?, ?)",
        (table, moved, bound[0], bound[1] if width > 1 else None),
    )
    return f"table={table} rows={moved}"


def _on_postgres(connection: sa.Connection, table: str) -> str:
    """Moves one day at a time."""
    partitions = _partitions(connection, f"old_{table}")
    if partitions:
        day = partitions[0].rpartition("_")[2]
        if not sa.inspect(connection).has_table(f"{table}_{day}"):
            for statement in of_day(table, day):
                connection.exec_driver_sql(statement)
        connection.exec_driver_sql(_insertion(table, partitions[0], "true"))
        connection.exec_driver_sql(f"DROP TABLE {partitions[0]}")
        return f"table={table} day={day} left={len(partitions) - 1}"
    if table == "reports":
        connection.exec_driver_sql(_insertion(table, f"old_{table}", "true"))
    connection.exec_driver_sql(f"DROP TABLE old_{table}")
    return f"table={table} state=done"


def _insertion(table: str, source: str, chosen: str) -> str:
    columns = old.COLUMNS[table]
    names = ", ".join(f'"{name}"' for name in columns)
    return (
        f"INSERT INTO {table} ({names}) SELECT {', '.join(columns.values())} "
        f"FROM {source} AS old{_SOURCES[table]} WHERE {chosen} AND {_MOVED[table]}"
    )


def _constraints(connection: sa.Connection, table: str) -> list[str]:
    found = connection.exec_driver_sql(
        f"SELECT conname FROM pg_constraint WHERE conrelid = '{table}'::regclass"
    )
    return [name for (name,) in found]


def _partitions(connection: sa.Connection, table: str) -> list[str]:
    found = connection.exec_driver_sql(
        "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
        f"JOIN pg_class p ON p.oid = i.inhparent WHERE p.relname = '{table}' "
        "AND p.relnamespace = current_schema()::regnamespace ORDER BY c.relname"
    )
    return [name for (name,) in found]
