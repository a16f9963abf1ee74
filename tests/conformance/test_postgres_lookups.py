"""Statements of the delivery path look up each row by its own key, whatever the planner believes.

Plans are made once, and perhaps beside empty tables: another index would then read everything that
an account has, for each delivery.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.records import handed_over
from cuepost.adapters.storage.records.postgres_queue import LEASE_WITH_FACTS
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.ids import lowest_at
from cuepost.testing import START
from tests.support.postgres import fresh_database

ID = lowest_at(START)
PAIRS: dict[str, Any] = {"accounts": [1], "deliveries": [ID], "worker": UUID(int=1)}
CASES: dict[str, tuple[Sql, dict[str, Any]]] = {
    "what was handed over": (handed_over._LEASED, {"lowest": ID, "highest": ID}),
    "a claim": (LEASE_WITH_FACTS, {"events": [ID], "first_event": ID, "last_event": ID}),
}


@pytest.fixture
async def new_store(postgres_url: str, template: str) -> AsyncIterator[PostgresStore]:
    """In a database of its own: the planner remembers how full a table has been."""
    async with fresh_database(postgres_url, template=template) as url:
        store = PostgresStore(url)
        await store.open(START)
        yield store
        await store.close()


@pytest.mark.parametrize("case", CASES)
async def test_beside_empty_tables(new_store: PostgresStore, case: str) -> None:
    statement, more = CASES[case]
    plan = await explained(new_store, statement, PAIRS | more)
    used = set(re.findall(r"Index (?:Only )?Scan using (\S+)", plan))
    assert {re.sub(r"_\d{8}", "", name) for name in used} == {
        "accounts_pkey",
        "events_pkey",
        "projects_by_id",
        "queue_pkey",
    }
    assert "Seq Scan" not in plan


async def explained(store: PostgresStore, statement: Sql, values: Mapping[str, Any]) -> str:
    written, driver = statement.on("postgresql"), await store._pool.take()
    try:
        rows = await driver.fetch(f"EXPLAIN {written.text}", *written.values(values))
    finally:
        await store._pool.give_back(driver)
    return "\n".join(row[0] for row in rows)
