"""A worker whose clock is ahead of the database's claims what is due there."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.records.postgres_queue import PostgresQueue
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.watchdog import Watchdog
from cuepost.ports.dispatch import Claim
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import NoTelemetry
from tests.support.engine_harness import MINUTE, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"
SECOND = timedelta(seconds=1)
AHEAD = 100 * SECOND


@dataclass(frozen=True, slots=True)
class ClockAhead:
    inner: Clock

    def now(self) -> datetime:
        return self.inner.now() + AHEAD

    def monotonic(self) -> float:
        return self.inner.monotonic()

    async def wait(self, seconds: float) -> None:
        await self.inner.wait(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        return await self.inner.wait_for(event, seconds)


def test_a_retry_is_neither_waited_for_without_a_pause_nor_taken_for_a_stall(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[datetime] = []
    claim = Claims.claim

    async def noted(self: Claims, wanted: Claim, now: datetime) -> object:
        asked.append(now)
        assert len(asked) < 1_000, "it claims without a pause"
        return await claim(self, wanted, now)

    async def scenario(engine: EngineHarness) -> None:
        async def of_the_server(self: PostgresQueue, here: datetime) -> datetime:
            return engine.clock.now()

        monkeypatch.setattr(Claims, "claim", noted)
        monkeypatch.setattr(PostgresQueue, "time", of_the_server)
        await engine.harness.endpoint()
        engine.transport.will(URL, 500)
        async with engine.delivering():
            await engine.harness.complete()
            await engine.later(SECOND)
        asked.clear()
        wrong = engine.dispatcher(clock=ClockAhead(engine.clock), longest_sleep=10 * SECOND)
        async with engine.delivering(wrong), asyncio.TaskGroup() as tasks:
            watchdog = Watchdog(wrong, engine.store, engine.clock, NoTelemetry())
            watching = tasks.create_task(watchdog.run())
            await engine.later(50 * SECOND)
            before, stalled = len(engine.sent), watchdog.stalled
            assert {now - engine.clock.now() <= timedelta(0) for now in asked} == {True}
            await engine.later(MINUTE)
            watching.cancel()
        assert (before, stalled, len(asked) < 30) == (1, None, True)
        [delivery] = await engine.harness.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED

    run_postgres(scenario)
