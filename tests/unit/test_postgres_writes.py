"""Columns with one value in all rows of a batch are sent as a single value."""

import pytest

from cuepost.adapters.storage.columns import converted
from cuepost.adapters.storage.postgres_writes import OFTEN_EQUAL, Shape, equal_columns, together
from cuepost.adapters.storage.records.counts import COUNTED, KEY, TABLE
from cuepost.adapters.storage.row_writes import Row, RowWrite, inserted
from cuepost.adapters.storage.tables import metadata
from cuepost.domain.event import SilenceReason

ADD = inserted("events", "account", "id", "occurred_at", "reason")
COUNT = RowWrite("accumulate", TABLE, (*KEY, *COUNTED), KEY)


def written(*rows: Row, to: RowWrite = ADD) -> tuple[str, list[object]]:
    columns = list(zip(*converted(rows, to.to_postgres), strict=True))
    shape = Shape(to, equal_columns(to, columns))
    return together((shape,)), shape.values(columns)


def counted(**counts: int) -> tuple[str, list[object]]:
    row = (1, 2, 5, 0, *(counts.get(name, 0) for name in COUNTED))
    return written(row, row, to=COUNT)


def test_equal_columns_are_sent_once() -> None:
    sql, values = written((1, "a", 5, None), (1, "b", 5, None))
    assert values == [(1, 1), ("a", "b"), 5, None]
    assert sql == (
        'INSERT INTO events ("account", "id", "occurred_at", "reason") '
        'SELECT given."account", given."id", $3::timestamptz, $4::smallint '
        'FROM unnest($1::integer[], $2::uuid[]) AS given("account", "id")'
    )


def test_if_one_of_them_differs_all_are_sent_as_arrays() -> None:
    sql, values = written((1, "a", 5, None), (1, "b", 5, SilenceReason.STANDALONE_TRANSCRIPT))
    assert values == [(1, 1), ("a", "b"), (5, 5), (None, 2)]
    assert sql == (
        'INSERT INTO events ("account", "id", "occurred_at", "reason") '
        'SELECT given."account", given."id", given."occurred_at", given."reason" '
        "FROM unnest($1::integer[], $2::uuid[], $3::timestamptz[], $4::smallint[]) "
        'AS given("account", "id", "occurred_at", "reason")'
    )


def test_counts_of_zero_are_not_added() -> None:
    sql, values = counted(delivered=1, http_2xx=1, latency_0=1)
    changed = sql.partition(" DO UPDATE SET ")[2]
    assert [each.split('"')[1] for each in changed.split(", ")] == [
        "delivered",
        "http_2xx",
        "latency_0",
        "latency_1",
        "latency_2",
    ]
    assert values.count(0) == len(COUNTED) - 5


def test_other_counts_are_added_though_they_are_equal() -> None:
    sql, values = counted(delivered=1, abandoned=1)
    changed = sql.partition(" DO UPDATE SET ")[2]
    assert [each.split('"')[1] for each in changed.split(", ")] == list(COUNTED)
    assert values[len(KEY) + COUNTED.index("abandoned")] == (1, 1)


@pytest.mark.parametrize("table", OFTEN_EQUAL)
def test_only_columns_of_the_table_other_than_its_key_may_be_single_values(table: str) -> None:
    columns = {each.name: each.primary_key for each in metadata.tables[table].columns}
    assert {columns[name] for name in OFTEN_EQUAL[table]} == {False}
