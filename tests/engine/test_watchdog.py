"""Deliveries that stop for no reason are noticed within seconds; those that have one are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from math import inf
from typing import Any

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.watchdog import NOT_CLAIMED, NOT_RECORDED, NOT_STARTED, Watchdog
from cuepost.ports.store import Priority, Transaction
from cuepost.ports.telemetry import NoTelemetry
from cuepost.testing import HANGS, Answer
from tests.support.engine_harness import MINUTE, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"
SECOND = timedelta(seconds=1)


class Told(NoTelemetry):
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def stalled(self, reason: str) -> None:
        self.reasons.append(reason)


@asynccontextmanager
async def watched(
    engine: EngineHarness, dispatcher: Dispatcher | None = None
) -> AsyncIterator[tuple[Watchdog, Told]]:
    reported = Told()
    async with engine.delivering(dispatcher) as working, asyncio.TaskGroup() as tasks:
        watchdog = Watchdog(working, engine.store, engine.clock, reported)
        watching = tasks.create_task(watchdog.run())
        yield watchdog, reported
        watching.cancel()


def test_results_that_are_not_recorded_are_noticed(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        flush, may_go_on = OutcomeRecorder._flush, asyncio.Event()

        async def held_up(self: OutcomeRecorder) -> None:
            await may_go_on.wait()
            await flush(self)

        monkeypatch.setattr(OutcomeRecorder, "_flush", held_up)
        await engine.harness.endpoint()
        async with watched(engine) as (watchdog, reported):
            await engine.harness.complete()
            await engine.later(SECOND)
            assert not watchdog.stalled
            await engine.later(2 * SECOND)
            assert watchdog.stalled == NOT_RECORDED
            await engine.later(MINUTE)
            assert reported.reasons == [NOT_RECORDED]
            may_go_on.set()
            await engine.later(SECOND)
            assert not watchdog.stalled

    run_scenarios(scenario)
    lines = [each for each in caplog.messages if "event=engine_" in each]
    assert lines[0].startswith(f'event=engine_stalled reason="{NOT_RECORDED}" worker=')
    assert "unrecorded=1" in lines[0]
    assert lines[1:] == [f'event=engine_goes_on after="{NOT_RECORDED}"']


def test_due_work_that_is_not_claimed_is_noticed(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        claim, may_go_on = Intake.claim, asyncio.Event()

        async def held_up(self: Intake) -> bool:
            await may_go_on.wait()
            return await claim(self)

        monkeypatch.setattr(Intake, "claim", held_up)
        await engine.harness.endpoint()
        await engine.harness.complete()
        async with watched(engine) as (watchdog, _):
            await engine.later(5 * SECOND)
            assert watchdog.stalled == NOT_CLAIMED
            may_go_on.set()
            await engine.later(SECOND)
            assert not watchdog.stalled

    run_scenarios(scenario)


def test_claimed_work_that_is_not_started_is_noticed(
    run_embedded: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Dispatcher, "_start_attempts", lambda _: None)
    monkeypatch.setattr(LaneBoard, "drop_expired", lambda *_: [])
    monkeypatch.setattr(LaneBoard, "next_expiry", inf)

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with watched(engine) as (watchdog, _):
            await engine.harness.complete()
            await engine.later(5 * SECOND)
            assert watchdog.stalled == NOT_STARTED

    run_embedded(scenario)


def test_an_idle_engine_and_hanging_receivers_raise_no_alarm(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, *[HANGS] * 20)
        async with watched(engine, engine.dispatcher(cap=2)) as (_, reported):
            await engine.later(MINUTE)
            for _ in range(10):
                await engine.harness.complete()
            await engine.later(10 * MINUTE)
            assert reported.reasons == []

    run_scenarios(scenario)


def test_results_that_wait_their_turn_behind_a_slow_booking_raise_no_alarm(
    run_embedded: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async def slow(_: Transaction) -> None:
            await engine.clock.wait(5)

        await engine.harness.endpoint()
        engine.transport.will(URL, Answer(seconds=0.5))
        async with watched(engine) as (_, reported), asyncio.TaskGroup() as tasks:
            await engine.harness.complete()
            tasks.create_task(engine.store.write(slow, Priority.INGEST))
            await engine.later(10 * SECOND)
            assert len(engine.sent) == 1
            assert reported.reasons == []

    run_embedded(scenario)


def test_a_result_that_comes_while_the_engine_is_examined_raises_no_alarm(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attempt lasts so long that its result is being written when the examination ends."""
    write = OutcomeRecorder._write

    async def slow(self: OutcomeRecorder, *alone: Any) -> Any:
        await self.clock.wait(0.2)
        return await write(self, *alone)

    async def scenario(engine: EngineHarness) -> None:
        monkeypatch.setattr(OutcomeRecorder, "_write", slow)
        await engine.harness.endpoint()
        durations = [seconds / 10 for seconds in range(15, 45)]
        engine.transport.will(URL, *[Answer(seconds=each) for each in durations])
        async with watched(engine) as (_, reported):
            for _ in durations:
                await engine.harness.complete()
                await engine.later(6 * SECOND)
        assert (len(engine.sent), reported.reasons) == (len(durations), [])

    run_scenarios(scenario)


def test_a_process_that_was_suspended_raises_no_alarm(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, HANGS)
        async with watched(engine) as (_, reported):
            await engine.harness.complete()
            await engine.later(SECOND)
            engine.clock.advance(60)
            await engine.later(MINUTE)
            assert reported.reasons == []

    run_scenarios(scenario)


def test_a_slow_disk_is_no_stall_of_the_engine(run_embedded: RunScenarios) -> None:
    """As beside processes that use every core and the whole disk: a commit takes seconds."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        assert isinstance(engine.store.inner, SqliteStore)
        ledger = engine.store.inner._ledger
        commit = ledger.commit

        async def slow(rows: int, *, durable: bool) -> None:
            await engine.clock.wait(3)
            await commit(rows, durable=durable)

        async with watched(engine) as (_, reported):
            ledger.commit = slow  # type: ignore[method-assign]  # the seam to the disk
            reporting = asyncio.create_task(engine.harness.complete())
            await engine.later(MINUTE)
            await reporting
            ledger.commit = commit  # type: ignore[method-assign]  # as it was
            await engine.later(MINUTE)
            assert reported.reasons == []
        assert [each.status for each in await engine.harness.deliveries()] == ["delivered"]

    run_embedded(scenario)


def test_an_engine_that_goes_on_when_the_store_does_raises_no_alarm(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after two seconds without a sync: the watchdog's own write may be answered first."""

    async def scenario(engine: EngineHarness) -> None:
        flush = OutcomeRecorder._flush

        async def slow(self: OutcomeRecorder) -> None:
            await engine.clock.wait(2.7)
            await flush(self)

        monkeypatch.setattr(OutcomeRecorder, "_flush", slow)
        await engine.harness.endpoint()
        async with watched(engine) as (_, reported):
            await engine.harness.complete()
            await engine.later(MINUTE)
            assert reported.reasons == []

    run_scenarios(scenario)


def test_a_store_that_is_away_is_no_stall_of_the_engine(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with watched(engine) as (_, reported):
            await engine.harness.complete()
            engine.store.watch.fails = lambda _: True
            await engine.later(MINUTE)
            assert reported.reasons == []
            engine.store.watch.fails = lambda _: False

    run_embedded(scenario)
