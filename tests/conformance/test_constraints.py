"""What the tables themselves refuse, independent of the code that writes."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import accounts, bulk_retries, endpoints
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.ports.store import Contention, StoreRefused
from tests.support.records import Records
from tests.support.store_population import populate
from tests.support.store_rows import AnyStore, run

NOW = Records().clock.now()
REFUSED: list[tuple[str, sa.Table, dict[str, Any]]] = [
    ("an unknown state of an account", accounts, {"state": "sleeping"}),
    ("a deleted endpoint that is enabled", endpoints, {"deleted_at": NOW, "enabled": True}),
    ("an unknown state of a job", bulk_retries, {"state": "paused"}),
    ("a running job that has ended", bulk_retries, {"state": "running", "finished_at": NOW}),
    ("an ended job without its moment", bulk_retries, {"state": "finished", "finished_at": None}),
]

ALLOWED: list[tuple[str, sa.Table, dict[str, Any]]] = [
    ("a cancelled job", bulk_retries, {"state": BulkRetryState.CANCELLED, "finished_at": NOW}),
    ("a switched-off endpoint", endpoints, {"enabled": False}),
]


async def test_illegal_states_are_refused_by_the_tables(store: AnyStore, records: Records) -> None:
    await populate(store, records)
    accepted = []
    for what, table, values in REFUSED:
        try:
            await run(store, sa.update(table).values(**values))
        except StoreRefused:
            continue
        accepted.append(what)
    assert accepted == []


@pytest.mark.parametrize(("table", "values"), [case[1:] for case in ALLOWED])
async def test_legal_states_are_taken(
    store: AnyStore, records: Records, table: sa.Table, values: dict[str, Any]
) -> None:
    await populate(store, records)
    assert await run(store, sa.update(table).values(**values)) == 1


async def test_ids_of_projects_are_unique_across_accounts(
    store: AnyStore, records: Records
) -> None:
    project = records.project(records.id())
    async with store.transaction() as transaction:
        await transaction.projects.add(project)
    with pytest.raises(Contention):
        async with store.transaction() as transaction:
            await transaction.projects.add(replace(project, account_id=records.id()))
