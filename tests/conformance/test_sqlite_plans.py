"""Every plan of SQLite reads what it is asked for, and not the whole account."""

import re
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.sqlite_statistics import STATISTICS
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.ports.dispatch import Claim, NextStep, Result
from cuepost.ports.history import Bars, DeliveryFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from tests.support.records import Records
from tests.support.store_population import Populated, populate
from tests.support.store_rows import rows, run

BIG = "delivery_counts|deliveries|events|attempts|queue|projects|reports|artifacts"
# Reads more than what was asked for: everything, or a whole account.
TOO_MUCH = re.compile(rf"^SCAN ({BIG})\b|^SEARCH ({BIG}) .*\(account(_id)?=\?\)$|AUTOMATIC")
SORTS = re.compile("TEMP B-TREE")

Work = Callable[[Transaction, Populated], Awaitable[object]]
NOW = Records().clock.now()
FAILED = DeliveryStatus.FAILED
BY_ENDPOINT = "deliveries_by_account_endpoint_status_id"
DELETED, EXPIRED = CancelReason.PROJECT_DELETED, CancelReason.PROJECT_ACCESS_EXPIRED

WORK: dict[str, Work] = {
    "owners": lambda t, p: t.projects.owners([p.project.id]),
    "lock projects": lambda t, p: t.projects.lock([(p.account.id, p.project.id)]),
    "save projects": lambda t, p: t.projects.save([p.project]),
    "save moves of projects": lambda t, p: t.projects.save_status([p.project]),
    "expired projects": lambda t, p: t.projects.expired(NOW, 5),
    "replace files": lambda t, p: t.projects.replace_artifacts({(p.account.id, p.project.id): ()}),
    "find reports": lambda t, p: t.reports.find([(p.account.id, "a"), (p.account.id, "b")]),
    "one event": lambda t, p: t.events.get(p.account.id, p.event.id),
    "one delivery": lambda t, p: t.deliveries.get(p.account.id, p.ended.id),
    "lock a delivery": lambda t, p: t.deliveries.lock(p.account.id, p.pending.id),
    "stop a project": lambda t, p: t.deliveries.stop_project(
        p.account.id, p.project.id, DELETED, NOW
    ),
    "stop at the end of access": lambda t, p: t.deliveries.stop_project(
        p.account.id, p.project.id, EXPIRED, NOW
    ),
    "stop an endpoint": lambda t, p: t.deliveries.stop_endpoint(
        p.account.id, p.endpoint.id, DELETED, NOW
    ),
    "send again": lambda t, p: t.deliveries.send_again(p.account.id, [p.ended.id], NOW),
    "retrying": lambda t, p: t.deliveries.retrying(p.account.id, [p.endpoint.id]),
    "attempts": lambda t, p: t.attempts.of_delivery(p.account.id, p.ended.id),
    "last attempts": lambda t, p: t.attempts.last_of(p.account.id, [p.ended.id]),
    "candidates": lambda t, p: t.bulk_retries.next_candidates(p.job, 5),
    "count of candidates": lambda t, p: t.bulk_retries.count_candidates(p.job),
    "failed deliveries": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(status=FAILED), Page(5, p.ended.id)
    ),
    "failed deliveries of an endpoint": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(p.endpoint.id, FAILED), Page(5, p.ended.id)
    ),
    "failed deliveries and those delivered before": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(status=FAILED, include_delivered=True), Page(5, p.ended.id)
    ),
    "deliveries of an endpoint": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(p.endpoint.id), Page(5, p.ended.id)
    ),
    "deliveries of a type": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(event_type=p.event.type), Page(5, p.ended.id)
    ),
    "delivered ones of a type": lambda t, p: t.deliveries.page(
        p.account.id,
        DeliveryFilter(event_type=p.event.type, status=DeliveryStatus.DELIVERED),
        Page(5, p.ended.id),
    ),
    "delivered ones": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(status=DeliveryStatus.DELIVERED), Page(5, p.ended.id)
    ),
    "deliveries of an event": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(event_id=p.event.id), Page(5, p.ended.id)
    ),
    "deliveries of a project": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(project_id=p.project.id), Page(5, p.ended.id)
    ),
    "figures": lambda t, p: t.attempts.figures_of(p.account.id, [p.ended.id]),
    "delete an endpoint": lambda t, p: t.endpoints.delete(p.account.id, p.endpoint.id, NOW),
    "deliveries by status": lambda t, p: t.deliveries.page(
        p.account.id, DeliveryFilter(status=p.ended.status, project_id=p.project.id), Page(5)
    ),
}


# These sort what they have found, which is no more than they were asked for.
OF_FEW: dict[str, Work] = {
    "counts": lambda t, p: t.counts.of_endpoints(p.account.id, [p.endpoint.id], Bars(NOW, 60, 360)),
    "counts of an account": lambda t, p: t.counts.of_account(p.account.id, Bars(NOW, 60, 360)),
    "results": lambda t, p: t.outcomes.record(p.job.id, [result(p)], NOW),
    "late results": lambda t, p: t.outcomes.record(p.job.id, [result(p)] * 2, NOW),
    "claim": lambda t, p: t.queue.claim(Claim(p.job.id, 5, lambda _: 5), NOW),
    "put back": lambda t, p: put_back(t, p.job.id, p.pending.id),
    "deliveries of events": lambda t, p: t.deliveries.of_events(p.account.id, [p.event.id]),
}
WORK |= OF_FEW


def result(of: Populated) -> Result:
    records = Records()
    attempt = records.attempt(of.pending)
    return Result(records.assignment(of.pending), attempt, NextStep(DeliveryStatus.DELIVERED))


async def put_back(transaction: Transaction, worker: UUID, delivery_id: UUID) -> None:
    """It may have been sent, so an interrupted attempt is kept."""
    assert isinstance(transaction, RecordsTransaction)
    lease = Sql("UPDATE queue SET status = :status, worker = :worker WHERE id = :delivery")
    await transaction.session.execute(
        lease, status=DeliveryStatus.DELIVERING, worker=worker, delivery=delivery_id
    )
    await transaction.queue.put_back(worker, [delivery_id], NOW, None, may_be_sent=True)


async def plans_of(store: SqliteStore, records: Records, name: str) -> dict[str, list[str]]:
    """The steps of each statement that the work makes."""
    owned = await populate(store, records)
    driver = store._require_open()
    heard: list[str] = []
    async with store.transaction() as transaction:
        driver.set_trace_callback(heard.append)
        await WORK[name](transaction, owned)
        driver.set_trace_callback(None)
        statements = [each for each in heard if not each.startswith("--")]
        return {
            each: [row[3] for row in driver.execute(f"EXPLAIN QUERY PLAN {each}")]
            for each in statements
        }


@pytest.mark.parametrize("name", WORK)
async def test_a_statement_reads_no_more_than_it_is_asked_for(
    sqlite_store: SqliteStore, records: Records, name: str
) -> None:
    plans = await plans_of(sqlite_store, records, name)
    assert plans
    steps = [(step, each) for each, plan in plans.items() for step in plan]
    assert [each for each in steps if TOO_MUCH.search(each[0])] == []
    # What is in flight fits the memory of the processes that send it, and may be sorted.
    few = name in OF_FEW or any("INDEX queue_in_flight" in step for step, _ in steps)
    assert few or [each for each in steps if SORTS.search(each[0])] == []


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("failed deliveries", "deliveries_not_delivered"),
        ("failed deliveries and those delivered before", "deliveries_not_delivered"),
        ("failed deliveries of an endpoint", BY_ENDPOINT),
        ("deliveries of an endpoint", BY_ENDPOINT),
        ("candidates", BY_ENDPOINT),
        ("count of candidates", BY_ENDPOINT),
        ("deliveries of a type", "deliveries_by_account_event_type_id"),
        ("deliveries of a project", "events_by_account_project_id_id"),
    ],
)
async def test_a_page_is_read_in_the_order_of_its_index(
    sqlite_store: SqliteStore, records: Records, name: str, index: str
) -> None:
    plans = await plans_of(sqlite_store, records, name)
    assert [step for plan in plans.values() for step in plan if f"INDEX {index} (" in step]


async def test_the_planner_is_told_of_every_index_of_the_large_tables(
    sqlite_store: SqliteStore,
) -> None:
    driver = sqlite_store._require_open()
    without_rowid = {row[1] for row in driver.execute("PRAGMA table_list") if row[4]}
    existing = {
        (table, table if origin == "pk" and table in without_rowid else index)
        for table in {table for table, _ in STATISTICS}
        for _, index, _, origin, _ in driver.execute(f"PRAGMA index_list({table})")
    }
    assert set(STATISTICS) == existing


async def test_the_planner_is_told_again_when_someone_has_told_it_otherwise(
    sqlite_store: SqliteStore,
) -> None:
    await run(sqlite_store, sa.text("UPDATE sqlite_stat1 SET stat = '1 1'"))
    again = SqliteStore(sqlite_store._path, sqlite_store._clock)
    await again.open()
    await again.close()
    found = await rows(sqlite_store, sa.text("SELECT tbl, idx, stat FROM sqlite_stat1"))
    assert {(row.tbl, row.idx): row.stat for row in found} == STATISTICS
