"""Expired rows are deleted on both stores, and maintenance without work writes nothing."""

import logging
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

import pytest

from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine import retention
from cuepost.engine.maintenance import MaintenanceJob, maintenance_jobs
from cuepost.ports.store import Action, Priority, Store, Transaction
from tests.application.harness import RULES, Harness
from tests.engine.maintenance_harness import MaintenanceHarness, running_maintenance

T = TypeVar("T")

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
WINDOW = 30 * DAY


def jobs_of(harness: Harness) -> tuple[MaintenanceJob, ...]:
    return maintenance_jobs(harness.store, harness.service, harness.clock, WINDOW)


@pytest.fixture
async def runner(harness: Harness) -> AsyncIterator[MaintenanceHarness]:
    async with running_maintenance(harness.clock, jobs_of(harness)) as runner:
        yield runner


async def ended(harness: Harness) -> None:
    await harness.end(await harness.complete(), DeliveryStatus.DELIVERED)


async def test_history_is_there_for_the_whole_window_and_gone_soon_after(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    await harness.endpoint()
    await ended(harness)
    await runner.later(WINDOW)
    assert len(await harness.deliveries()) == len(await harness.events()) == 1
    await ended(harness)

    await runner.later(DAY)
    await runner.later(HOUR)

    [left] = await harness.deliveries()
    assert harness.clock.now() - left.created_at == DAY + HOUR
    assert [event.id for event in await harness.events()] == [left.event_id]


async def test_on_the_embedded_store_it_is_gone_within_ten_minutes(
    sqlite_harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "EXPIRED_ROWS_AT_ONCE", 2)
    harness = sqlite_harness
    async with running_maintenance(harness.clock, jobs_of(harness)) as runner:
        await harness.endpoint()
        for _ in range(5):
            await ended(harness)
        await runner.later(WINDOW + 10 * MINUTE)

    assert (await harness.deliveries(), await harness.events()) == ([], [])


async def test_a_delivery_that_waits_for_its_attempt_does_not_leave(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    await harness.endpoint()
    waiting = await harness.complete()

    await runner.later(WINDOW + 2 * DAY)
    assert [each.id for each in await harness.deliveries()] == [waiting.id]
    await harness.end(waiting, DeliveryStatus.DELIVERED)
    await runner.later(HOUR)
    assert await harness.deliveries() == []


async def test_the_previous_secret_leaves_when_the_overlap_has_ended(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, webhook_id)

    await runner.later(DAY - SECOND)
    assert len((await harness.dump())["signing_secrets"]) == 2
    await runner.later(10 * MINUTE)
    assert [row.version for row in (await harness.dump())["signing_secrets"]] == [2]


async def test_a_bulk_retry_leaves_with_the_history_that_it_was_about(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await harness.do(
        harness.service.redeliver.start_bulk,
        harness.owner,
        webhook_id,
        since=harness.clock.now() - HOUR,
        until=None,
        statuses=[],
        dry_run=False,
    )

    await runner.later(WINDOW)
    assert len((await harness.dump())["bulk_retries"]) == 1
    await runner.later(HOUR)
    assert (await harness.dump())["bulk_retries"] == []


async def test_two_housekeepers_clear_away_together(
    harness: Harness,
    runner: MaintenanceHarness,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(retention, "EXPIRED_ROWS_AT_ONCE", 3)
    await harness.endpoint()
    for _ in range(10):
        await ended(harness)

    async with running_maintenance(harness.clock, jobs_of(harness)) as other:
        await runner.later(WINDOW + DAY)
        await other.rest()
        await runner.later(HOUR)
        await other.rest()

    stored = await harness.dump()
    assert not any(stored[name] for name in ("events", "deliveries", "attempts", "reports"))
    assert [each for each in caplog.records if each.levelno > logging.WARNING] == []


class Watched:
    """A store that counts how often someone asks to write."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.writes = 0

    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        self.writes += 1
        return self._store.transaction()

    async def write(self, action: Action[T], priority: Priority) -> T:
        self.writes += 1
        return await self._store.write(action, priority)

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        return self._store.snapshot()

    def single_read(self) -> AbstractAsyncContextManager[Transaction]:
        return self._store.single_read()

    async def check(self) -> None:
        await self._store.check()

    async def prepare_days(self, now: datetime) -> None:
        self.writes += 1
        await self._store.prepare_days(now)


async def test_maintenance_with_nothing_to_do_writes_nothing(harness: Harness) -> None:
    await harness.endpoint()
    await harness.record(await harness.complete(), DeliveryStatus.DELIVERED)
    async with running_maintenance(harness.clock, jobs_of(harness)):
        pass
    store = Watched(harness.store)
    watched = replace(harness, store=store).reassembled(RULES)

    async with running_maintenance(harness.clock, jobs_of(watched)) as runner:
        await runner.later(HOUR)

    assert store.writes == 0
