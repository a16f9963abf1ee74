"""Accounts are listed, searched and found through an index, however many there are."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.records import access
from cuepost.adapters.storage.records.paging import HIGHEST
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.records import SearchedBy
from tests.support.records import Records
from tests.support.store_rows import AnyStore

MANY = 5_000
SEARCH = {"after": "studio 1", "after_id": UUID(int=0), "ending": "studio 2", "most": 21}
# Statement, its values, and the index that it reads in order: SQLite and PostgreSQL name the one of
# a unique column differently.
CASES: dict[str, tuple[Sql, dict[str, Any], tuple[str, ...]]] = {
    "a page": (
        access._PAGE,
        {"before": HIGHEST, "most": 21},
        ("sqlite_autoindex_accounts_1", "accounts_id_key"),
    ),
    "a search by name": (
        access._FOUND[SearchedBy.NAME],
        SEARCH,
        ("accounts_by_search_name_id",),
    ),
    "a search by external id": (
        access._FOUND[SearchedBy.EXTERNAL_ID],
        SEARCH | {"after": "cust_1", "ending": "cust_2"},
        ("accounts_by_external_id",),
    ),
    "one external id": (
        access._BY_EXTERNAL_ID,
        {"its_id": "cust_7"},
        ("accounts_by_external_id",),
    ),
    "what is being erased": (access._ERASING, {"most": 20}, ("accounts_by_erasing_since",)),
    "what has no search name yet": (
        access._WITHOUT_SEARCH_NAME,
        {"most": 500},
        ("accounts_by_search_name_id",),
    ),
    "keys of an account": (
        access._KEYS_OF_ACCOUNT,
        {"account_id": UUID(int=7), "before": HIGHEST, "most": 21},
        ("api_keys_by_account_id",),
    ),
}

# An account has few keys, and they may be sorted.
OF_FEW = ("keys of an account",)


@pytest.fixture
async def full_store(store: AnyStore, records: Records) -> AnyStore:
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        ids = [records.id() for _ in range(MANY)]
        rows = [
            {
                "id": identifier,
                "name": f"Studio {number}",
                "webhooks_enabled": True,
                "created_at": records.clock.now(),
                "external_id": f"cust_{number}",
                "search_name": f"studio {number}",
            }
            for number, identifier in enumerate(ids)
        ]
        await transaction.session.insert("accounts", rows)
        for identifier in ids:
            await transaction.keys.add(records.key(identifier))
    await asked(store, "ANALYZE")
    return store


async def asked(store: AnyStore, text: str, values: Sequence[Any] = ()) -> list[Any]:
    """Of the driver itself, which leaves what it says as it is."""
    if isinstance(store, SqliteStore):
        return store._require_open().execute(text, values).fetchall()
    assert isinstance(store, PostgresStore)
    driver = await store._pool.take()
    try:
        return list(await driver.fetch(text, *values))
    finally:
        store._pool.give_back(driver)


async def plan_of(store: AnyStore, statement: Sql, values: dict[str, Any]) -> str:
    is_sqlite = isinstance(store, SqliteStore)
    written = statement.sqlite if is_sqlite else statement.postgresql
    verb = "EXPLAIN QUERY PLAN" if is_sqlite else "EXPLAIN"
    rows = await asked(store, f"{verb} {written.text}", written.values(values))
    return "\n".join(str(row[-1]) for row in rows)


async def test_each_way_to_accounts_reads_an_index_in_its_order(full_store: AnyStore) -> None:
    for case, (statement, values, indexes) in CASES.items():
        plan = await plan_of(full_store, statement, values)
        assert any(index in plan for index in indexes), (case, plan)
        sorts = () if case in OF_FEW else ("TEMP B-TREE",)
        for slow in ("SCAN accounts\n", "Seq Scan", "AUTOMATIC", *sorts):
            assert slow not in f"{plan}\n", (case, plan)
