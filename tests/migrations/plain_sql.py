"""Rows as an earlier release wrote them, past the tables of today."""

from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.partitions import of_day
from cuepost.domain.instants import to_millis


def insert(connection: sa.Connection, table: str, row: dict[str, Any]) -> None:
    embedded = connection.dialect.name == "sqlite"
    marks = ["?" if embedded else f"${place}" for place in range(1, len(row) + 1)]
    values = tuple(_embedded(value) if embedded else value for value in row.values())
    columns = ", ".join(f'"{name}"' for name in row)
    connection.exec_driver_sql(
        f"INSERT INTO {table} ({columns}) VALUES ({', '.join(marks)})", values
    )


def make_days(connection: sa.Connection, *instants: datetime) -> None:
    """Partitions of history for these days, where the engine needs them."""
    if connection.dialect.name != "postgresql":
        return
    for day in {f"{instant:%Y%m%d}" for instant in instants}:
        for table in ("events", "deliveries", "attempts"):
            for statement in of_day(table, day):
                connection.exec_driver_sql(statement)


def _embedded(value: Any) -> Any:
    if isinstance(value, UUID):
        return value.bytes
    return to_millis(value) if isinstance(value, datetime) else value
