"""What the tables themselves refuse, whoever writes."""

from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import (
    attempts,
    bulk_retries,
    deliveries,
    endpoints,
    projects,
    queue,
)
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.store import Contention
from tests.support.records import Records
from tests.support.store_population import populate
from tests.support.store_rows import AnyStore, run

NOW = Records().clock.now()
SOME_ID = Records().id()
LEASE = {"lease_token": SOME_ID}
ENDED = {"finished_at": NOW, "reason": None}

REFUSED: list[tuple[str, sa.Table, dict[str, Any]]] = [
    ("an unknown project status", projects, {"status": "paused"}),
    ("an unknown stage", projects, {"stage": "upload"}),
    ("an unknown kind of project", projects, {"kind": "audio"}),
    ("an unknown origin", projects, {"origin": "fax"}),
    ("a deleted endpoint that is enabled", endpoints, {"deleted_at": NOW, "enabled": True}),
    ("an unknown trigger", deliveries, {"trigger": "magic"}),
    ("an unknown final status", deliveries, ENDED | {"final_status": "lost"}),
    ("a live status as the final one", deliveries, ENDED | {"final_status": "retrying"}),
    ("an end without its moment", deliveries, {"final_status": "failed", "finished_at": None}),
    ("a moment without an end", deliveries, {"final_status": None, "finished_at": NOW}),
    ("a cancellation without a reason", deliveries, ENDED | {"final_status": "cancelled"}),
    (
        "a reason without a cancellation",
        deliveries,
        ENDED | {"final_status": "failed", "reason": "project_deleted"},
    ),
    (
        "an unknown reason",
        deliveries,
        ENDED | {"final_status": "cancelled", "reason": "weather"},
    ),
    ("an unknown state", queue, {"state": "parked"}),
    ("a final state", queue, {"state": "delivered"}),
    ("a flight without a lease", queue, {"state": "delivering", "lease_token": None}),
    ("a lease without a flight", queue, LEASE | {"state": "retrying"}),
    ("a waiting delivery that was stopped", queue, {"stop_reason": "project_deleted"}),
    ("an unknown stop", queue, LEASE | {"state": "delivering", "stop_reason": "weather"}),
    ("an unknown outcome", attempts, {"outcome": "shrug"}),
    ("an unknown fault of TLS", attempts, {"tls_fault": "unable to get local issuer"}),
    ("an attempt by an unknown trigger", attempts, {"trigger": "magic"}),
    ("an unknown state of a job", bulk_retries, {"state": "paused"}),
    ("a running job that has ended", bulk_retries, {"state": "running", "finished_at": NOW}),
    ("an ended job without its moment", bulk_retries, {"state": "finished", "finished_at": None}),
]

ALLOWED: list[tuple[str, sa.Table, dict[str, Any]]] = [
    ("a stop in flight", queue, LEASE | {"state": "delivering", "stop_reason": "project_deleted"}),
    ("a pause after a flight", queue, {"state": "retrying"}),
    ("a cancelled job", bulk_retries, {"state": BulkRetryState.CANCELLED, "finished_at": NOW}),
    ("a switched-off endpoint", endpoints, {"enabled": False}),
]


def same(table: sa.Table) -> sa.ColumnElement[bool]:
    """The row that the change is tried on: of the deliveries the one that has ended."""
    return table.c.final_status == DeliveryStatus.FAILED if table is deliveries else sa.true()


async def test_illegal_states_are_refused_by_the_tables(store: AnyStore, records: Records) -> None:
    await populate(store, records)
    accepted = []
    for what, table, values in REFUSED:
        try:
            await run(store, sa.update(table).where(same(table)).values(**values))
        except sa.exc.IntegrityError:
            continue
        accepted.append(what)
    assert accepted == []


@pytest.mark.parametrize(("table", "values"), [case[1:] for case in ALLOWED])
async def test_legal_states_are_taken(
    store: AnyStore, records: Records, table: sa.Table, values: dict[str, Any]
) -> None:
    await populate(store, records)
    assert await run(store, sa.update(table).where(same(table)).values(**values)) == 1


async def test_ids_of_projects_are_unique_across_accounts(
    store: AnyStore, records: Records
) -> None:
    project = records.project(records.id())
    async with store.transaction() as transaction:
        await transaction.projects.add(project)
    with pytest.raises(Contention):
        async with store.transaction() as transaction:
            await transaction.projects.add(replace(project, account_id=records.id()))
