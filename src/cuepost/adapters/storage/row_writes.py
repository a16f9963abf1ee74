"""Writes of many rows, as the records declare them; each engine makes its own statement of them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal, TypeAlias

from cuepost.adapters.storage.columns import PARTITION_KEYS, Converters, kind_of

Row: TypeAlias = tuple[Any, ...]
Verb: TypeAlias = Literal["insert", "accumulate", "update", "delete"]


@dataclass(frozen=True, eq=False)
class RowWrite:
    """A row is a tuple of the domain's values, in the order of `columns`.

    The columns outside the key are inserted, changed, or (`accumulate`) added to what is there. A
    deletion on SQLite can return the first column of each deleted row, in the driver's form.
    """

    verb: Verb
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    returns: bool = False

    @cached_property
    def to_sqlite(self) -> Converters:
        kinds = enumerate(kind_of(self.table, name) for name in self.columns)
        return [(place, kind.to_sqlite) for place, kind in kinds if kind.to_sqlite is not None]

    @cached_property
    def to_postgres(self) -> Converters:
        kinds = enumerate(kind_of(self.table, name) for name in self.columns)
        return [(place, kind.to_postgres) for place, kind in kinds if kind.to_postgres is not None]

    @cached_property
    def bounded(self) -> str | None:
        """The key column whose bounds PostgreSQL gets, so that it searches few partitions."""
        by = PARTITION_KEYS.get(self.table)
        return by if by in self.key else None


def inserted(table: str, *columns: str) -> RowWrite:
    return RowWrite("insert", table, columns)


def updated(table: str, key: tuple[str, ...], *changed: str) -> RowWrite:
    return RowWrite("update", table, (*changed, *key), key)


def deleted(table: str, *key: str, returns: bool = False) -> RowWrite:
    return RowWrite("delete", table, key, key, returns)


row_write = cache(RowWrite)
"""The write of rows that are built for each call; there are few different ones."""


def tuples(columns: Iterable[str], rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    return [tuple([row[name] for name in columns]) for row in rows]
