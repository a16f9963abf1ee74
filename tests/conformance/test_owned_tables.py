"""What is deleted with an account, and by which key, is what the schema says."""

from cuepost.adapters.storage.records.keys import OWNED, owner_in
from cuepost.adapters.storage.tables import metadata

OWNERS = {"account", "account_id"}
DECLARED = {
    table.name: table for table in metadata.sorted_tables if OWNERS & set(table.columns.keys())
}


def test_every_table_with_an_owner_is_known_by_its_key() -> None:
    keys = {name: tuple(table.primary_key.columns.keys()) for name, table in DECLARED.items()}
    assert keys == OWNED


def test_each_of_them_names_its_owner_in_one_column() -> None:
    assert {name: {owner_in(name)} for name in OWNED} == {
        name: OWNERS & set(table.columns.keys()) for name, table in DECLARED.items()
    }
