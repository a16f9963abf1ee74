"""Columns with one value in all rows of a batch are sent as a single value."""

from cuepost.adapters.storage.postgres_writes import Shape, Writes, equal_columns

COLUMNS = ("account", "id", "occurred_at", "reason")


def written(values: list[tuple[object, ...]]) -> tuple[str, list[object]]:
    writes = Writes()
    equal = equal_columns("events", COLUMNS, values)
    writes.add(Shape("insert", "events", COLUMNS, equal=equal), values)
    return writes.take()


def test_equal_columns_are_sent_once() -> None:
    sql, values = written([(1, 1), ("a", "b"), (5, 5), (None, None)])
    assert values == [(1, 1), ("a", "b"), 5, None]
    assert sql == (
        'INSERT INTO events ("account", "id", "occurred_at", "reason") '
        'SELECT given."account", given."id", $3::timestamptz, $4::smallint '
        'FROM unnest($1::integer[], $2::uuid[]) AS given("account", "id")'
    )


def test_if_one_of_them_differs_all_are_sent_as_arrays() -> None:
    sql, values = written([(1, 1), ("a", "b"), (5, 5), (None, 2)])
    assert values == [(1, 1), ("a", "b"), (5, 5), (None, 2)]
    assert sql == (
        'INSERT INTO events ("account", "id", "occurred_at", "reason") '
        'SELECT given."account", given."id", given."occurred_at", given."reason" '
        "FROM unnest($1::integer[], $2::uuid[], $3::timestamptz[], $4::smallint[]) "
        'AS given("account", "id", "occurred_at", "reason")'
    )


def test_a_key_that_bounds_the_partitions_is_never_a_single_value() -> None:
    writes = Writes()
    keys = [("reason",), (3,), ("a",)]
    writes.add(Shape("update", "events", ("reason", "account", "id"), ("account", "id")), keys)
    _, values = writes.take()
    assert values == [("reason",), (3,), ("a",), "a", "a"]
