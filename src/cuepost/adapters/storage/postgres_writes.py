"""Writes many rows with one array per column, and several tables in one statement.

The driver encodes each element of an array separately, which is a large part of a write. So columns
that have the same value in all rows of a batch are sent as a single value.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from cuepost.adapters.storage.columns import PARTITION_KEYS, kind_of
from cuepost.adapters.storage.session import Rows
from cuepost.domain.delivery_counts import LATENCY_BINS, AttemptClass

Columns = Sequence[Sequence[Any]]

# Columns of the hot path that mostly have one value in a batch: its time, what a first attempt that
# succeeds leaves empty, and what it does not count. If one of them differs, all are sent as arrays,
# so that there are only two statements for a table.
OFTEN_EQUAL: Mapping[str, tuple[str, ...]] = {
    "projects": ("status", "stage", "updated_at", "exported_at"),
    "events": ("occurred_at", "reason"),
    "reports": ("reason", "created_at"),
    "queue": (
        "trigger",
        "attempt_count",
        "budget",
        "delivered_at",
        "status",
        "due_at",
        "attempts_made",
    ),
    "deliveries": (
        "trigger",
        "attempt_count",
        "budget",
        "delivered_at",
        "status",
        "reason",
        "finished_at",
        "number",
        "dns_ms",
        "connect_ms",
        "tls_ms",
        "response_status",
        "response_truncated",
        "outcome",
        "tls_fault",
    ),
    "delivery_counts": (
        "failed",
        "cancelled",
        "abandoned",
        *(each.value for each in AttemptClass if each is not AttemptClass.ACKNOWLEDGED),
        *(f"latency_{place}" for place in range(3, LATENCY_BINS)),
    ),
}


def equal_columns(table: str, columns: Sequence[str], values: Columns) -> tuple[str, ...]:
    """Those of `OFTEN_EQUAL`, if each of them has the same value in all rows."""
    often = OFTEN_EQUAL.get(table, ())
    for name in often:
        if name in columns:
            column = values[columns.index(name)]
            if column.count(column[0]) != len(column):
                return ()
    return often


@dataclass(frozen=True, slots=True)
class Shape:
    """A write without its values."""

    verb: Literal["insert", "accumulate", "update", "delete"]
    table: str
    columns: tuple[str, ...]
    key: tuple[str, ...] = ()
    equal: tuple[str, ...] = ()

    @property
    def bounded(self) -> str | None:
        """The key column whose bounds are added, so that not every partition is searched."""
        by = PARTITION_KEYS.get(self.table)
        return by if by in self.key else None

    def values(self, columns: Columns) -> list[Any]:
        given = [
            column[0] if name in self.equal else column
            for name, column in zip(self.columns, columns, strict=True)
        ]
        if self.bounded is None:
            return given
        among = columns[self.columns.index(self.bounded)]
        return [*given, min(among), max(among)]

    def encoded(self, rows: Rows) -> Columns:
        return [self._column(name, rows) for name in self.columns]

    def _column(self, name: str, rows: Rows) -> list[Any]:
        convert = kind_of(self.table, name).to_postgres
        if convert is None:
            return [row[name] for row in rows]
        return [convert(row[name]) for row in rows]


@dataclass(slots=True)
class Writes:
    """Buffers writes until another statement depends on them, then sends all in one round trip.

    They must be of different tables, because none sees the changes of another.
    """

    _held: dict[Shape, Columns] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self._held)

    def would_mix(self, shape: Shape) -> bool:
        return any(held.table == shape.table for held in self._held)

    def add(self, shape: Shape, columns: Columns) -> None:
        self._held[shape] = columns

    def take(self) -> tuple[str, list[Any]]:
        """The statement and its values; empties the buffer."""
        held, self._held = self._held, {}
        values = [value for shape, columns in held.items() for value in shape.values(columns)]
        return _together(tuple(held)), values


@cache
def _together(shapes: tuple[Shape, ...]) -> str:
    statements: list[str] = []
    place = 1
    for shape in shapes:
        statements.append(_WRITTEN[shape.verb](shape, place))
        place += len(shape.columns) + (2 if shape.bounded else 0)
    *others, last = statements
    if not others:
        return last
    named = ", ".join(f"write_{number} AS ({sql})" for number, sql in enumerate(others))
    return f"WITH {named} {last}"


def _insert(shape: Shape, first: int) -> str:
    chosen = ", ".join(_value(shape, name, first) for name in shape.columns)
    into = f"{shape.table} ({_names(shape.columns)})"
    return f"INSERT INTO {into} SELECT {chosen} FROM {_given(shape, first)}"


def _accumulate(shape: Shape, first: int) -> str:
    counted = (name for name in shape.columns if name not in shape.key)
    sums = ", ".join(f'"{name}" = {shape.table}."{name}" + excluded."{name}"' for name in counted)
    key = ", ".join(shape.key)
    return f"{_insert(shape, first)} ON CONFLICT ({key}) DO UPDATE SET {sums}"


def _update(shape: Shape, first: int) -> str:
    changed = (name for name in shape.columns if name not in shape.key)
    changes = ", ".join(f'"{name}" = {_value(shape, name, first)}' for name in changed)
    source = _given(shape, first)
    return f"UPDATE {shape.table} SET {changes} FROM {source} WHERE {_match(shape, first)}"


def _delete(shape: Shape, first: int) -> str:
    return f"DELETE FROM {shape.table} USING {_given(shape, first)} WHERE {_match(shape, first)}"


_WRITTEN: Mapping[str, Callable[[Shape, int], str]] = {
    "insert": _insert,
    "accumulate": _accumulate,
    "update": _update,
    "delete": _delete,
}


def _given(shape: Shape, first: int) -> str:
    """The rows, as one parameter for each column that is not equal in all of them."""
    listed = [name for name in shape.columns if name not in shape.equal]
    arrays = ", ".join(f"{_parameter(shape, name, first)}[]" for name in listed)
    return f"unnest({arrays}) AS given({_names(listed)})"


def _value(shape: Shape, name: str, first: int) -> str:
    return _parameter(shape, name, first) if name in shape.equal else f'given."{name}"'


def _parameter(shape: Shape, name: str, first: int) -> str:
    place = first + shape.columns.index(name)
    return f"${place}::{kind_of(shape.table, name).postgres_type}"


def _names(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def _match(shape: Shape, first: int) -> str:
    """Forces the planner to look up each row by its key, however few rows it expects.

    It cannot use a comparison with a list of one for a join, nor the bounds (with the OR) for an
    index scan: they only exclude partitions.
    """
    table = shape.table
    conditions = [f'{table}."{name}" = ANY (ARRAY[given."{name}"])' for name in shape.key]
    if shape.bounded:
        place, column = first + len(shape.columns), f'{table}."{shape.bounded}"'
        lowest, highest = f"${place}::uuid", f"${place + 1}::uuid"
        conditions.append(f"({column} BETWEEN {lowest} AND {highest} OR {column} = {lowest})")
    return " AND ".join(conditions)
