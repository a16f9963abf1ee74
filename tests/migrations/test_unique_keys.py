"""The account is in every unique key of what it owns, so that rows can be shared out by account."""

from collections.abc import Sequence

import sqlalchemy as sa

from cuepost.adapters.storage.records.keys import OWNED
from cuepost.adapters.storage.tables import metadata
from tests.migrations.conftest import Database

OWNERS = {"account", "account_id"}
# Small tables, a few rows for each account, of which every part of a shared database would have a
# copy. What they are asked for comes before the account is known.
DIRECTORIES = {
    "accounts": "it is the directory of accounts, by id and by number",
    "api_keys": "who presents a key names no account; service keys have none",
    "endpoints": "lanes, queue and history know an endpoint by its number alone",
    "users": "who signs in names an e-mail, which belongs to one person of the whole service",
}
# What costs each delivery something to put right, and so is not.
EXCEPTIONS = {
    "projects": "a milestone names a project alone, and a plan that is made beside empty tables "
    "looks it up by the index only if that is unique",
}
# About running processes and sign-ins that are not complete: no account owns a row of them.
UNOWNED = {"lanes", "sign_in_attempts", "workers", "alembic_version"}


def unique_keys(connection: sa.Connection) -> dict[str, list[set[str]]]:
    """As the database itself tells: of each table its primary key and what else is unique."""
    inspector = sa.inspect(connection)
    found: dict[str, list[set[str]]] = {}
    for table in inspector.get_table_names():
        primary = inspector.get_pk_constraint(table)["constrained_columns"]
        constraints = inspector.get_unique_constraints(table)
        indexes = [each for each in inspector.get_indexes(table) if each["unique"]]
        keys: list[Sequence[str | None]] = [primary]
        keys += [each["column_names"] for each in constraints]
        keys += [each["column_names"] for each in indexes]
        found[table] = [{str(name) for name in key} for key in keys if key]
    return found


async def test_every_unique_key_of_owned_data_has_the_account_in_it(database: Database) -> None:
    await database.upgrade()
    found = await database.do(unique_keys)
    assert found.keys() >= {table.name for table in metadata.sorted_tables}
    without = {
        table
        for table, keys in found.items()
        if table not in UNOWNED and any(not key & OWNERS for key in keys)
    }
    assert without == set(DIRECTORIES | EXCEPTIONS)


async def test_every_table_is_owned_by_accounts_or_listed_as_unowned(database: Database) -> None:
    await database.upgrade()
    assert {*await database.do(unique_keys)} == {*OWNED, "accounts", *UNOWNED}
