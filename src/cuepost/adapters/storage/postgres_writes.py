"""Writes many rows with one array per column, and several tables in one statement.

The driver encodes each element of an array separately, which is a large part of a write. So columns
that have the same value in all rows of a batch are sent as a single value.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from cuepost.adapters.storage.columns import kind_of
from cuepost.adapters.storage.row_writes import RowWrite, Verb
from cuepost.adapters.storage.sql import quoted
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


def equal_columns(to: RowWrite, values: Columns) -> tuple[str, ...]:
    """Those of `OFTEN_EQUAL`, if each of them has the same value in all rows.

    In rows that are added to others the value has to be 0, so that these columns stay as they are.
    """
    for place in _often_equal(to):
        column = values[place]
        if column.count(0 if to.verb == "accumulate" else column[0]) != len(column):
            return ()
    return OFTEN_EQUAL.get(to.table, ())


@cache
def _often_equal(to: RowWrite) -> Sequence[int]:
    often = OFTEN_EQUAL.get(to.table, ())
    return [place for place, name in enumerate(to.columns) if name in often]


class Shape(NamedTuple):
    """A write without its values; columns that are `equal` are sent as a single value."""

    write: RowWrite
    equal: tuple[str, ...] = ()

    def values(self, columns: Columns) -> list[Any]:
        given = [
            column[0] if name in self.equal else column
            for name, column in zip(self.write.columns, columns, strict=True)
        ]
        if self.write.bounded is None:
            return given
        among = columns[self.write.columns.index(self.write.bounded)]
        return [*given, min(among), max(among)]


@cache
def together(shapes: tuple[Shape, ...]) -> str:
    """One statement for all of these; their tables must differ."""
    statements: list[str] = []
    place = 1
    for shape in shapes:
        statements.append(_WRITTEN[shape.write.verb](shape, place))
        place += len(shape.write.columns) + (2 if shape.write.bounded else 0)
    *others, last = statements
    if not others:
        return last
    named = ", ".join(f"write_{number} AS ({sql})" for number, sql in enumerate(others))
    return f"WITH {named} {last}"


def _insert(shape: Shape, first: int) -> str:
    columns = shape.write.columns
    chosen = ", ".join(_value(shape, name, first) for name in columns)
    into = f"{shape.write.table} ({quoted(columns)})"
    return f"INSERT INTO {into} SELECT {chosen} FROM {_given(shape, first)}"


def _accumulate(shape: Shape, first: int) -> str:
    table, key = shape.write.table, shape.write.key
    kept = (*key, *shape.equal)
    counted = (name for name in shape.write.columns if name not in kept)
    sums = ", ".join(f'"{name}" = {table}."{name}" + excluded."{name}"' for name in counted)
    return f"{_insert(shape, first)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sums}"


def _update(shape: Shape, first: int) -> str:
    changed = (name for name in shape.write.columns if name not in shape.write.key)
    changes = ", ".join(f'"{name}" = {_value(shape, name, first)}' for name in changed)
    source = _given(shape, first)
    return f"UPDATE {shape.write.table} SET {changes} FROM {source} WHERE {_match(shape, first)}"


def _delete(shape: Shape, first: int) -> str:
    source = _given(shape, first)
    return f"DELETE FROM {shape.write.table} USING {source} WHERE {_match(shape, first)}"


_WRITTEN: Mapping[Verb, Callable[[Shape, int], str]] = {
    "insert": _insert,
    "accumulate": _accumulate,
    "update": _update,
    "delete": _delete,
}


def _given(shape: Shape, first: int) -> str:
    """The rows, as one parameter for each column that is not equal in all of them."""
    listed = [name for name in shape.write.columns if name not in shape.equal]
    arrays = ", ".join(f"{_parameter(shape, name, first)}[]" for name in listed)
    return f"unnest({arrays}) AS given({quoted(listed)})"


def _value(shape: Shape, name: str, first: int) -> str:
    return _parameter(shape, name, first) if name in shape.equal else f'given."{name}"'


def _parameter(shape: Shape, name: str, first: int) -> str:
    place = first + shape.write.columns.index(name)
    return f"${place}::{kind_of(shape.write.table, name).postgres_type}"


def _match(shape: Shape, first: int) -> str:
    """Forces the planner to look up each row by its key, however few rows it expects.

    It cannot use a comparison with a list of one for a join, nor the bounds (with the OR) for an
    index scan: they only exclude partitions.
    """
    table = shape.write.table
    conditions = [f'{table}."{name}" = ANY (ARRAY[given."{name}"])' for name in shape.write.key]
    if shape.write.bounded:
        place, column = first + len(shape.write.columns), f'{table}."{shape.write.bounded}"'
        lowest, highest = f"${place}::uuid", f"${place + 1}::uuid"
        conditions.append(f"({column} BETWEEN {lowest} AND {highest} OR {column} = {lowest})")
    return " AND ".join(conditions)
