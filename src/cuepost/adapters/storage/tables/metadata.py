"""The metadata that all tables share, and how their constraints are named."""

from collections.abc import Iterable

import sqlalchemy as sa

metadata = sa.MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "ck": "%(table_name)s_%(constraint_name)s",
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
    }
)


def one_of(column: str, values: Iterable[str]) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=column)


def partial_index(
    name: str,
    *columns: sa.Column[object],
    where: sa.ColumnElement[bool],
    unique: bool = False,
) -> sa.Index:
    return sa.Index(name, *columns, unique=unique, sqlite_where=where, postgresql_where=where)
