"""A worker that is told to stop finishes what is in flight, gives back the rest, and goes."""

import logging
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.ports.dispatch import Lane
from cuepost.testing import HANGS, Answer
from tests.support.engine_harness import HOUR, EngineHarness, RunScenarios

URL = "https://hooks.example.com/cue"


def test_what_is_in_flight_is_finished_and_written_down_the_rest_is_given_back(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        [lane] = await engine.lanes()
        engine.transport.will(URL, Answer(seconds=9), Answer(status=500, seconds=9))
        async with engine.delivering(engine.dispatcher(cap=2)) as leaving:
            for _ in range(5):
                await harness.complete()
            await engine.later()
            stopped_at = engine.clock.now()
            leaving.stop()
            await engine.later()
            assert not leaving.running
            assert leaving.reserve(lane) is None
        assert (engine.clock.now() - stopped_at).total_seconds() == pytest.approx(9, abs=0.1)
        ended = [each.status for each in reversed(await harness.deliveries())]
        assert ended == [DeliveryStatus.DELIVERED, DeliveryStatus.RETRYING] + ["pending"] * 3
        rows = await harness.dump()
        assert {row.worker for row in rows["queue"]} == {None}
        assert (rows["workers"], rows["lanes"]) == ([], [])
        async with engine.delivering():
            await engine.later(HOUR)
        assert {each.status for each in await harness.deliveries()} == {DeliveryStatus.DELIVERED}
        assert len(engine.sent) == 6

    run_scenarios(scenario)


def test_others_go_on_at_once_with_what_is_not_in_flight(run_postgres: RunScenarios) -> None:
    """A deploy: one endpoint takes twelve seconds, and the others do not wait for it."""

    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        slow, quick = "https://slow.example.com/cue", "https://quick.example.com/cue"
        for url in (slow, quick):
            await harness.endpoint(url=url)
        engine.transport.will(slow, *[Answer(seconds=12)] * 40)
        engine.transport.will(quick, *[Answer(seconds=0.3)] * 40)
        old, new = (engine.dispatcher(cap=1, longest_sleep=HOUR) for _ in range(2))
        assert isinstance(new, SharedDispatcher)
        async with engine.delivering(old, direct=False):
            for _ in range(8):
                await harness.report(harness.milestone(await harness.project()))
            old.work_for(await engine.lanes())
            await engine.later(timedelta(seconds=0.5))
            async with engine.delivering(new, direct=False):
                await engine.later()
                old.stop()
                before = len(engine.sent)
                # What PostgreSQL would announce.
                for _ in range(8):
                    await engine.later(timedelta(seconds=0.25))
                    new.workers_changed()
                to_quick = [each for each in engine.sent[before:] if each.request.url.text == quick]
                assert len(to_quick) >= 3
                await engine.later(2 * HOUR)
        assert {each.status for each in await harness.deliveries()} == {DeliveryStatus.DELIVERED}
        assert set(engine.transport.most_in_flight.values()) == {1}
        assert len(engine.sent) == 16

    run_postgres(scenario)


def test_an_attempt_that_ends_while_the_lanes_are_released_is_noticed(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        leave = QueueRecords.leave

        async def slow(self: QueueRecords, worker: UUID, busy: Collection[Lane]) -> None:
            await engine.clock.wait(3)
            await leave(self, worker, busy)

        monkeypatch.setattr(QueueRecords, "leave", slow)
        await engine.harness.endpoint()
        engine.transport.will(URL, Answer(seconds=2))
        async with engine.delivering():
            await engine.harness.complete()
            await engine.later()
            began = engine.clock.now()
        assert (engine.clock.now() - began).total_seconds() == pytest.approx(3, abs=0.5)

    run_postgres(scenario)


def test_it_goes_even_while_a_receiver_hangs(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, HANGS)
        async with engine.delivering():
            await engine.harness.complete()
            await engine.later()
            began = engine.clock.now()
        assert (engine.clock.now() - began).total_seconds() == pytest.approx(15, abs=0.1)

    run_scenarios(scenario)


def test_it_goes_within_seconds_although_the_store_is_away_and_nothing_is_lost(
    run_scenarios: RunScenarios, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness, watch = engine.harness, engine.store.watch
        await harness.endpoint()
        engine.transport.will(URL, Answer(seconds=3), *[500] * 20)
        async with engine.delivering(engine.dispatcher(attempts=2, cap=1)):
            for _ in range(6):
                await harness.complete()
            await engine.later()
            watch.fails = lambda _: True
            began = engine.clock.now()
        assert (engine.clock.now() - began).total_seconds() <= 3 + 5 + 1
        watch.fails = lambda _: False
        await engine.later(2 * HOUR)
        await engine.take_over()
        async with engine.delivering():
            await engine.later(HOUR)
        statuses = [each.status for each in await harness.deliveries()]
        assert set(statuses) <= {DeliveryStatus.DELIVERED, DeliveryStatus.FAILED}
        assert len(statuses) == 6

    with caplog.at_level(logging.WARNING):
        run_scenarios(scenario)
    assert [each for each in caplog.messages if "event=left_without_word" in each]
    assert [each for each in caplog.messages if "event=outcomes_given_up count=1" in each]


def test_a_full_recorder_does_not_keep_it(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness, watch = engine.harness, engine.store.watch
        await harness.endpoint()
        async with engine.delivering(engine.dispatcher(attempts=1, cap=1)) as dispatcher:
            dispatcher._most_unrecorded = 1
            for _ in range(4):
                await harness.complete()
            watch.fails = lambda _: True
            await engine.later(HOUR / 60)
            began = engine.clock.now()
        assert (engine.clock.now() - began).total_seconds() <= 6
        watch.fails = lambda _: False

    run_embedded(scenario)
