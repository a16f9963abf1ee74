"""Columns with one value in all rows of a batch are sent as a single value."""

import pytest

from cuepost.adapters.storage.postgres_writes import OFTEN_EQUAL, Writes
from cuepost.adapters.storage.row_writes import inserted
from cuepost.adapters.storage.tables import metadata
from cuepost.domain.event import SilenceReason

ADD = inserted("events", "account", "id", "occurred_at", "reason")


def written(*rows: tuple[object, ...]) -> tuple[str, list[object]]:
    writes = Writes()
    writes.add(ADD, rows)
    return writes.take()


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


@pytest.mark.parametrize("table", OFTEN_EQUAL)
def test_only_columns_of_the_table_other_than_its_key_may_be_single_values(table: str) -> None:
    columns = {each.name: each.primary_key for each in metadata.tables[table].columns}
    assert {columns[name] for name in OFTEN_EQUAL[table]} == {False}
