"""A column's name says what it holds: what the statements believe is what the schema has."""

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql

from cuepost.adapters.storage.columns import EXCEPTIONS, KINDS, PARTITION_KEYS, kind_of
from cuepost.adapters.storage.tables import PARTITIONED, metadata
from cuepost.adapters.storage.types import Code

COLUMNS = [column for table in metadata.sorted_tables for column in table.columns]
OTHER_NAMES = {"timestamptz": "timestamp with time zone"}


@pytest.mark.parametrize("column", COLUMNS, ids=str)
def test_a_column_is_of_the_kind_that_its_name_says(column: sa.Column[object]) -> None:
    kind = kind_of(column.table.name, column.name)
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    declared = column.type.compile(dialect).lower().removesuffix(' collate "c"')
    assert OTHER_NAMES.get(kind.postgres_type, kind.postgres_type) == declared
    if isinstance(column.type, Code):
        assert kind.to_postgres == column.type.of.codes.__getitem__


def test_no_name_is_there_in_vain() -> None:
    used = {EXCEPTIONS.get((each.table.name, each.name), each.name) for each in COLUMNS}
    assert KINDS.keys() == used


def test_history_is_partitioned_by_these_keys() -> None:
    declared = {table.name: table.dialect_options["postgresql"] for table in PARTITIONED}
    reported = {name: f"RANGE ({key})" for name, key in PARTITION_KEYS.items()}
    assert {name: options["partition_by"] for name, options in declared.items()} == reported
