"""Statements of the delivery path look up each row by its own key, whatever the planner believes.

Plans are made once, and perhaps beside empty tables: another index would then read everything that
an account has, for each delivery.
"""

import re
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.records import queue
from cuepost.adapters.storage.records.postgres_queue import LEASE_WITH_FACTS
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.instants import lowest_at
from cuepost.testing import START
from tests.conformance.test_long_backlog import (
    MOST_ROWS_READ,
    OVERDUE,
    claim,
    queue_up,
)
from tests.support.postgres import fresh_database
from tests.support.records import Records
from tests.support.store_rows import run

ID = lowest_at(START)
PAIRS: dict[str, Any] = {"accounts": [1], "deliveries": [ID], "worker": UUID(int=1)}
CASES: dict[str, tuple[Sql, dict[str, Any]]] = {
    "what was handed over": (queue._HANDED_OVER, {"lowest": ID, "highest": ID}),
    "a claim": (LEASE_WITH_FACTS, {"events": [ID], "first_event": ID, "last_event": ID}),
}
# If only these were there at the last ANALYZE, the server expects that nothing waits.
IN_FLIGHT = sa.text(
    """
    INSERT INTO queue (account, id, endpoint, event_id, event_type, trigger, status, attempt_count,
        budget, due_at, attempts_made, worker)
    SELECT 1, gen_random_uuid(), 1, gen_random_uuid(), 0, 0, 2, 0, 0, now(), 0, gen_random_uuid()
    FROM generate_series(1, 5000)
    """
)


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
    written, driver = statement.postgresql, await store._pool.take()
    try:
        rows = await driver.fetch(f"EXPLAIN {written.text}", *written.values(values))
    finally:
        store._pool.give_back(driver)
    return "\n".join(row[0] for row in rows)


async def test_a_claim_beside_statistics_of_a_queue_in_which_nothing_waits(
    new_store: PostgresStore, records: Records
) -> None:
    await run(new_store, IN_FLIGHT)
    await run(new_store, sa.text("ANALYZE queue"))
    account_id = records.id()
    lanes = [await queue_up(new_store, records, account_id, OVERDUE // 10) for _ in range(10)]
    claimed, rows_read = await claim(new_store, records, set(lanes))
    assert {each.lane for each in claimed.assignments} == set(lanes)
    assert rows_read <= MOST_ROWS_READ
