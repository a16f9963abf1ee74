"""What an operator sees of the whole service, and that reading it has a limit."""

from dataclasses import asdict
from datetime import timedelta
from typing import Any

import pytest

from cuepost.adapters.storage.records import counts as counts_records
from cuepost.adapters.storage.records import service_state
from cuepost.adapters.storage.records.counts import COUNTED
from cuepost.adapters.storage.schema import revisions
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.alert import Alert, AlertKind
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES, interval_of
from cuepost.domain.instants import from_millis, to_millis
from cuepost.ports.history import Bars
from cuepost.ports.service_state import EndpointLine, WorkerState
from tests.conformance.test_account_plans import asked, plan_of
from tests.support.records import Records
from tests.support.store_rows import AnyStore

MANY, INTERVALS = 3_000, 4
CLOSED_EVERY = 100


def intervals(records: Records, minutes: int) -> list[Any]:
    last = from_millis(interval_of(to_millis(records.clock.now()), minutes))
    return [last - place * timedelta(minutes=minutes) for place in range(INTERVALS)]


@pytest.fixture
async def full_store(store: AnyStore, records: Records) -> AnyStore:
    """Many accounts with one endpoint each, all of which have been busy for four intervals."""
    now = records.clock.now()
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        session = transaction.session
        accounts = [records.id() for _ in range(MANY)]
        await session.insert(
            "accounts",
            [
                {
                    "id": each,
                    "name": f"Studio {place}",
                    "webhooks_enabled": place % CLOSED_EVERY != 0,
                    "created_at": now,
                    "search_name": f"studio {place}",
                }
                for place, each in enumerate(accounts)
            ],
        )
        for each in accounts:
            endpoint = records.endpoint(each)
            await transaction.endpoints.add(endpoint, records.secret())
            await transaction.alerts.open(Alert(each, endpoint.id, AlertKind.FAILING, now))
            if each not in accounts[:5]:
                await transaction.alerts.end(each, endpoint.id, AlertKind.FAILING, now)
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        numbers = await transaction.session.fetch(
            Sql(
                """
                SELECT accounts.number AS account, endpoints.number FROM endpoints
                JOIN accounts ON accounts.id = endpoints.account_id
                """
            )
        )
        rows = [
            {"account": account, "endpoint": endpoint, "minutes": minutes, "since": since}
            | dict.fromkeys(COUNTED, 0)
            | {"delivered": 2, "failed": 1}
            for account, endpoint in numbers
            for minutes in (FINE_MINUTES, HOUR_MINUTES)
            for since in intervals(records, minutes)
        ]
        await transaction.session.insert("delivery_counts", rows)
    await asked(store, "ANALYZE")
    return store


async def test_counts_of_all_accounts_are_added_up(full_store: AnyStore, records: Records) -> None:
    since = intervals(records, FINE_MINUTES)[1]
    async with full_store.snapshot() as transaction:
        found = await transaction.service_state.counts(FINE_MINUTES, since)
    assert not found.is_cut
    assert [each.since for each in found.intervals] == [since, since + timedelta(minutes=5)]
    assert {(each.counts.delivered, each.counts.failed) for each in found.intervals} == {
        (2 * MANY, MANY)
    }


async def test_beyond_a_limit_only_the_newest_whole_intervals_count(
    full_store: AnyStore, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_state, "COUNTS_READ", 2 * MANY + 10)
    all_of_them = intervals(records, HOUR_MINUTES)
    async with full_store.snapshot() as transaction:
        found = await transaction.service_state.counts(HOUR_MINUTES, all_of_them[-1])
    assert found.is_cut
    assert [each.since for each in found.whole] == all_of_them[1::-1]
    assert {each.counts.delivered for each in found.whole} == {2 * MANY}
    assert found.intervals[0].counts.delivered == 20


async def test_every_read_goes_through_an_index_and_ends_at_its_limit(
    full_store: AnyStore, records: Records
) -> None:
    now = records.clock.now()
    async with full_store.snapshot() as transaction:
        [account, *_] = await transaction.accounts.oldest(1)
    times = {"recent": now, "day": now - timedelta(days=1)}
    counts = {"minutes": HOUR_MINUTES, "since": now - timedelta(days=1), "most": 100}
    cases: dict[str, tuple[Sql, dict[str, Any], str]] = {
        "counts": (service_state._COUNTS, counts, "delivery_counts_by_minutes_since"),
        "due": (service_state._DUE, {"now": now, "most": 10}, "queue_by_due_at"),
        "oldest due": (service_state._OLDEST_DUE, {}, "queue_by_due_at"),
        "closed": (service_state._CLOSED, {"most": 10}, "accounts_without_access"),
        "failing": (service_state._FAILING, {"most": 10} | times, "alerts_open"),
        "of accounts": (
            service_state._OF_ACCOUNTS,
            {"account_ids": [account.id], "most": 10} | times,
            # Any of them fits, because nothing is queued here.
            "queue_",
        ),
    }
    of_account = {"account": 7, "endpoints": [7]} | asdict(Bars(now, HOUR_MINUTES, 360))
    plan = await plan_of(full_store, counts_records._OF_ACCOUNT, of_account)
    assert "delivery_counts_by_minutes_since" not in plan, plan
    for case, (statement, values, index) in cases.items():
        plan = await plan_of(full_store, statement, values)
        assert index in plan, (case, plan)
        for table in ("accounts", "endpoints", "delivery_counts", "queue"):
            for slow in (f"SCAN {table}\n", f"Seq Scan on {table}", "AUTOMATIC"):
                assert slow not in f"{plan}\n", (case, plan)


async def test_accounts_without_access_and_failing_endpoints_are_found(
    full_store: AnyStore, records: Records
) -> None:
    now = records.clock.now()
    day = now - timedelta(days=1)
    async with full_store.snapshot() as transaction:
        state = transaction.service_state
        closed = await state.closed_accounts(MANY)
        newest = await state.closed_accounts(2)
        failing = await state.failing(10, now - timedelta(hours=1), day)
        some = await state.failing(2, now, day)
        lines = await state.endpoints_of([failing[0].endpoint.account_id], 5, now, day)
    assert len(closed) == MANY // CLOSED_EVERY
    assert newest == closed[:2]
    assert [each.webhooks_enabled for each in newest] == [False, False]
    assert (len(failing), len(some), len(lines)) == (5, 2, 1)
    endpoint = failing[0].endpoint
    name = failing[0].account_name
    assert failing[0] == EndpointLine(endpoint, name, 0, INTERVALS, 2 * INTERVALS, INTERVALS)


async def test_workers_are_shown_with_what_they_hold(store: AnyStore, records: Records) -> None:
    now = records.clock.now()
    first, second = sorted((records.id(), records.id()))
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        for worker in (second, first):
            await transaction.queue.register_worker(worker, now)
        await transaction.queue.leave(second, ())
        rows = [{"endpoint": lane, "worker_id": first, "accepts": False} for lane in (7, 8)]
        await transaction.session.insert("lanes", rows)
    async with store.snapshot() as transaction:
        assert await transaction.service_state.workers(5) == [
            WorkerState(first, now, False, 2, 0),
            WorkerState(second, now, True, 0, 0),
        ]
        assert len(await transaction.service_state.workers(1)) == 1
        assert await transaction.service_state.due(now) == 0
        assert await transaction.service_state.oldest_due() is None


async def test_the_store_says_what_it_is(store: AnyStore) -> None:
    async with store.snapshot() as transaction:
        state = await transaction.service_state.store()
    engine = "sqlite" if isinstance(store, SqliteStore) else "postgresql"
    assert (state.engine, state.revision, state.newest) == (engine, *[revisions()[-1]] * 2)
    assert state.size_bytes > 10_000
