"""A page deep in a long history costs what the first one costs, on both stores."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.records import Page
from cuepost.testing import START
from tests.history.costs import Cost, Costs, PostgresCosts, SqliteCosts, gather_statistics
from tests.history.filling import (
    COMMON_TYPE,
    DAYS,
    RARE_TYPE,
    Expected,
    Month,
    Names,
    fill,
    month_of,
)
from tests.support.postgres import fresh_database
from tests.support.records import Records

ROWS = int(os.environ.get("CUEPOST_TEST_HISTORY_ROWS", "66000"))
LIMIT = 20
DEPTH = 1_000 * LIMIT
# A page of an endpoint takes a whole page of each status.
MOST_ROWS = 10 * LIMIT
# Virtual instructions on SQLite; buffers on PostgreSQL, where a rare row is looked for in each day.
MOST_WORK = {"sqlite": 200 * LIMIT, "postgresql": 20 * LIMIT}
SLACK = {"sqlite": 1_000, "postgresql": 100}

pytestmark = pytest.mark.timeout(180 + ROWS // 300)

OF_DELIVERIES = (
    "all",
    "of an endpoint",
    "delivered",
    "failed",
    "failed, delivered before or not",
    "cancelled",
    "delivered to an endpoint",
    "failed at an endpoint",
    "failed at an endpoint, delivered before or not",
    "pending",
    "pending for an endpoint",
    "retrying",
    "retrying for an endpoint",
    "delivering",
    "of a busy project",
    "of a rare project",
    "of a crowded event",
    "of a small event",
    "of a common type",
    "of a rare type",
    "of twenty days",
    "delivered in twenty days",
    "failed in twenty days",
    "until a day",
)
# The queue has no index by type: it would cost each delivery that waits, and the queue is short
# unless all workers are away.
READS_ALL_THAT_IS_LIVE = "of a rare type"
# PostgreSQL expects that an event has few deliveries, and sorts those of its millisecond if they
# seem to fit a page. A real event has no more of them than its account has endpoints.
SORTS_ONE_EVENT = "of a crowded event"
OF_EVENTS = ("all", "of a busy project", "of a rare project", "of a common type", "of a rare type")


def delivery_filters(names: Names) -> dict[str, DeliveryFilter]:
    status, busy = DeliveryStatus, names.busy_endpoint
    since, until = START - timedelta(days=25), START - timedelta(days=5)
    filters = (
        DeliveryFilter(),
        DeliveryFilter(webhook_id=busy),
        DeliveryFilter(status=status.DELIVERED),
        DeliveryFilter(status=status.FAILED),
        DeliveryFilter(status=status.FAILED, include_delivered=True),
        DeliveryFilter(status=status.CANCELLED),
        DeliveryFilter(status=status.DELIVERED, webhook_id=busy),
        DeliveryFilter(status=status.FAILED, webhook_id=busy),
        DeliveryFilter(status=status.FAILED, webhook_id=busy, include_delivered=True),
        DeliveryFilter(status=status.PENDING),
        DeliveryFilter(status=status.PENDING, webhook_id=busy),
        DeliveryFilter(status=status.RETRYING),
        DeliveryFilter(status=status.RETRYING, webhook_id=busy),
        DeliveryFilter(status=status.DELIVERING),
        DeliveryFilter(project_id=names.busy_project),
        DeliveryFilter(project_id=names.rare_project),
        DeliveryFilter(event_id=names.crowded_event),
        DeliveryFilter(event_id=names.small_event),
        DeliveryFilter(event_type=COMMON_TYPE),
        DeliveryFilter(event_type=RARE_TYPE),
        DeliveryFilter(since=since, until=until),
        DeliveryFilter(status=status.DELIVERED, since=since, until=until),
        DeliveryFilter(status=status.FAILED, since=since, until=until),
        DeliveryFilter(until=until),
    )
    return dict(zip(OF_DELIVERIES, filters, strict=True))


def event_filters(names: Names) -> dict[str, EventFilter]:
    filters = (
        EventFilter(),
        EventFilter(project_id=names.busy_project),
        EventFilter(project_id=names.rare_project),
        EventFilter(event_type=COMMON_TYPE),
        EventFilter(event_type=RARE_TYPE),
    )
    return dict(zip(OF_EVENTS, filters, strict=True))


@dataclass(frozen=True, slots=True)
class History:
    costs: Costs
    engine: str
    account_id: UUID
    expected: Expected

    async def deliveries(self, name: str, depth: int) -> tuple[Cost, list[UUID]]:
        chosen, ids = self.expected.of_deliveries[name]
        page, wanted = _page(ids, depth)
        return await self.costs.of(
            lambda transaction: transaction.deliveries.page(self.account_id, chosen, page)
        ), wanted

    async def events(self, name: str, depth: int) -> tuple[Cost, list[UUID]]:
        chosen, ids = self.expected.of_events[name]
        page, wanted = _page(ids, depth)
        return await self.costs.of(
            lambda transaction: transaction.events.page(self.account_id, chosen, page)
        ), wanted


def _page(ids: list[UUID], depth: int) -> tuple[Page, list[UUID]]:
    """The page at this offset, or near the end where there are fewer rows."""
    begin = min(depth, len(ids) * 3 // 4)
    newest_first = ids[::-1][begin : begin + LIMIT]
    return Page(LIMIT, before=ids[-begin] if begin else None), newest_first


def _expected(month: Month) -> Expected:
    of_deliveries, of_events = delivery_filters(month.names), event_filters(month.names)
    return Expected(
        {name: (chosen, []) for name, chosen in of_deliveries.items()},
        {name: (chosen, []) for name, chosen in of_events.items()},
    )


@asynccontextmanager
async def on_sqlite(path: Path) -> AsyncIterator[History]:
    store = SqliteStore(path, SystemClock())
    await store.open()
    records = Records()
    month = month_of(records, ROWS)
    expected = _expected(month)
    await fill(store, records, month, expected)
    yield History(SqliteCosts(store), "sqlite", month.account.id, expected)
    await store.close()


@asynccontextmanager
async def on_postgres(postgres_url: str) -> AsyncIterator[History]:
    async with fresh_database(postgres_url) as url:
        store, records = PostgresStore(url), Records()
        for days in range(DAYS, -1, -10):
            await store.migrate(START - timedelta(days=days))
        month = month_of(records, ROWS)
        expected = _expected(month)
        await fill(store, records, month, expected)
        await gather_statistics(store)
        yield History(PostgresCosts(store), "postgresql", month.account.id, expected)
        await store.close()


async def test_a_deep_page_costs_what_the_first_one_costs_on_sqlite(tmp_path: Path) -> None:
    async with on_sqlite(tmp_path / "cuepost.db") as history:
        assert await dear_pages(history) == {}


async def test_a_deep_page_costs_what_the_first_one_costs_on_postgres(postgres_url: str) -> None:
    async with on_postgres(postgres_url) as history:
        assert await dear_pages(history) == {}


async def dear_pages(history: History) -> dict[str, str]:
    """What is wrong with which pages; a store is filled once for all of them."""
    wrong = {}
    for what, page, names in (
        ("deliveries", history.deliveries, OF_DELIVERIES),
        ("events", history.events, OF_EVENTS),
    ):
        for name in names:
            first, expected_first = await page(name, 0)
            deep, expected_deep = await page(name, DEPTH)
            faults = faults_of(history.engine, first, deep)
            if name == READS_ALL_THAT_IS_LIVE and what == "deliveries":
                faults = []
            if name == SORTS_ONE_EVENT and history.engine == "postgresql":
                of_event = len(history.expected.of_deliveries[name][1])
                read = max(first.rows_examined, deep.rows_examined)
                faults = [each for each in first.faults + deep.faults if "Sort" not in each]
                faults += [f"{read} rows examined"] if read > of_event else []
            if (first.ids, deep.ids) != (expected_first, expected_deep):
                faults.append("other rows than expected")
            if faults:
                wrong[f"{what} {name}"] = ", ".join(faults)
    return wrong


def faults_of(engine: str, first: Cost, deep: Cost) -> list[str]:
    faults = [*first.faults, *deep.faults]
    if max(first.rows_examined, deep.rows_examined) > MOST_ROWS:
        faults.append(f"{first.rows_examined} and {deep.rows_examined} rows examined")
    if first.work > MOST_WORK[engine] or deep.work > 3 * first.work + SLACK[engine]:
        faults.append(f"work {first.work} and {deep.work}")
    return faults
