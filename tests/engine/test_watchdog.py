"""Deliveries that stop for no reason are noticed within seconds; those that have one are not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.sending import Sending
from cuepost.engine.watchdog import NOT_CLAIMED, NOT_RECORDED, NOT_STARTED, Watchdog
from cuepost.ports.store import Priority, Transaction
from cuepost.ports.telemetry import Silent
from cuepost.testing import HANGS, Answer
from tests.support.stage import MINUTE, Play, Stage

URL = "https://hooks.example.com/cue"
SECOND = timedelta(seconds=1)


class Told(Silent):
    def __init__(self) -> None:
        self.reasons: list[str] = []

    def stalled(self, reason: str) -> None:
        self.reasons.append(reason)


@asynccontextmanager
async def watched(
    stage: Stage, dispatcher: Dispatcher | None = None
) -> AsyncIterator[tuple[Watchdog, Told]]:
    told = Told()
    async with stage.delivering(dispatcher) as working, asyncio.TaskGroup() as tasks:
        watchdog = Watchdog(working, stage.store, stage.clock, told)
        watching = tasks.create_task(watchdog.run())
        yield watchdog, told
        watching.cancel()


def test_results_that_are_not_recorded_are_noticed(
    play: Play, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        flush, may_go_on = OutcomeRecorder._flush, asyncio.Event()

        async def held_up(self: OutcomeRecorder) -> None:
            await may_go_on.wait()
            await flush(self)

        monkeypatch.setattr(OutcomeRecorder, "_flush", held_up)
        await stage.world.endpoint()
        async with watched(stage) as (watchdog, told):
            await stage.world.complete()
            await stage.later(SECOND)
            assert not watchdog.stalled
            await stage.later(2 * SECOND)
            assert watchdog.stalled == NOT_RECORDED
            await stage.later(MINUTE)
            assert told.reasons == [NOT_RECORDED]
            may_go_on.set()
            await stage.later(SECOND)
            assert not watchdog.stalled

    play(scenario)
    lines = [each for each in caplog.messages if "event=engine_" in each]
    assert lines[0].startswith(f'event=engine_stalled reason="{NOT_RECORDED}" worker=')
    assert "unrecorded=1" in lines[0]
    assert lines[1:] == [f'event=engine_goes_on after="{NOT_RECORDED}"']


def test_due_work_that_nobody_claims_is_noticed(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        claim, may_go_on = Intake.claim, asyncio.Event()

        async def held_up(self: Intake, begin: object) -> bool:
            await may_go_on.wait()
            return await claim(self, begin)  # type: ignore[arg-type]  # as they came

        monkeypatch.setattr(Intake, "claim", held_up)
        await stage.world.endpoint()
        await stage.world.complete()
        async with watched(stage) as (watchdog, _):
            await stage.later(5 * SECOND)
            assert watchdog.stalled == NOT_CLAIMED
            may_go_on.set()
            await stage.later(SECOND)
            assert not watchdog.stalled

    play(scenario)


def test_claimed_work_that_is_not_started_is_noticed(
    play_embedded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Sending, "start_attempts", lambda _: None)
    monkeypatch.setattr(LaneBoard, "drop_expired", lambda *_: [])

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with watched(stage) as (watchdog, _):
            await stage.world.complete()
            await stage.later(5 * SECOND)
            assert watchdog.stalled == NOT_STARTED

    play_embedded(scenario)


def test_an_idle_engine_and_hanging_receivers_raise_no_alarm(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, *[HANGS] * 20)
        async with watched(stage, stage.dispatcher(cap=2)) as (_, told):
            await stage.later(MINUTE)
            for _ in range(10):
                await stage.world.complete()
            await stage.later(10 * MINUTE)
            assert told.reasons == []

    play(scenario)


def test_results_that_wait_their_turn_behind_a_slow_booking_raise_no_alarm(
    play_embedded: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        async def slow(_: Transaction) -> None:
            await stage.clock.wait(5)

        await stage.world.endpoint()
        stage.transport.will(URL, Answer(seconds=0.5))
        async with watched(stage) as (_, told), asyncio.TaskGroup() as tasks:
            await stage.world.complete()
            tasks.create_task(stage.store.write(slow, Priority.INGEST))
            await stage.later(10 * SECOND)
            assert len(stage.sent) == 1
            assert told.reasons == []

    play_embedded(scenario)


def test_a_process_that_was_suspended_raises_no_alarm(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, HANGS)
        async with watched(stage) as (_, told):
            await stage.world.complete()
            await stage.later(SECOND)
            stage.clock.advance(60)
            await stage.later(MINUTE)
            assert told.reasons == []

    play(scenario)


def test_a_slow_disk_is_no_stall_of_the_engine(play_embedded: Play) -> None:
    """As beside processes that use every core and the whole disk: a commit takes seconds."""

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        assert isinstance(stage.store.inner, SqliteStore)
        ledger = stage.store.inner._ledger
        commit = ledger.commit

        async def slow(rows: int, *, durable: bool) -> None:
            await stage.clock.wait(3)
            await commit(rows, durable=durable)

        async with watched(stage) as (_, told):
            ledger.commit = slow  # type: ignore[method-assign]  # the seam to the disk
            reporting = asyncio.create_task(stage.world.complete())
            await stage.later(MINUTE)
            await reporting
            ledger.commit = commit  # type: ignore[method-assign]  # as it was
            await stage.later(MINUTE)
            assert told.reasons == []
        assert [each.status for each in await stage.world.deliveries()] == ["delivered"]

    play_embedded(scenario)


def test_a_store_that_is_away_is_no_stall_of_the_engine(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with watched(stage) as (_, told):
            await stage.world.complete()
            stage.store.watch.fails = lambda _: True
            await stage.later(MINUTE)
            assert told.reasons == []
            stage.store.watch.fails = lambda _: False

    play_embedded(scenario)
