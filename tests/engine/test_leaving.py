"""A worker that is told to stop finishes what is in flight, gives back the rest, and goes."""

import logging
from collections.abc import Collection
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Lane
from cuepost.testing import HANGS, Answer
from tests.support.stage import HOUR, Play, Stage

URL = "https://hooks.example.com/cue"


def test_what_is_in_flight_is_finished_and_written_down_the_rest_is_given_back(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        [lane] = await stage.lanes()
        stage.transport.will(URL, Answer(seconds=9), Answer(status=500, seconds=9))
        async with stage.delivering(stage.dispatcher(cap=2)) as leaving:
            for _ in range(5):
                await world.complete()
            await stage.later()
            stopped_at = stage.clock.now()
            leaving.stop()
            await stage.later()
            assert not leaving.running
            assert leaving.reserve(lane) is None
        assert (stage.clock.now() - stopped_at).total_seconds() == pytest.approx(9, abs=0.1)
        ended = [each.status for each in reversed(await world.deliveries())]
        assert ended == [DeliveryStatus.DELIVERED, DeliveryStatus.RETRYING] + ["pending"] * 3
        rows = await world.dump()
        assert {row.worker for row in rows["queue"]} == {None}
        assert (rows["workers"], rows["lanes"]) == ([], [])
        async with stage.delivering():
            await stage.later(HOUR)
        assert {each.status for each in await world.deliveries()} == {DeliveryStatus.DELIVERED}
        assert len(stage.sent) == 6

    play(scenario)


def test_others_go_on_at_once_with_what_is_not_in_flight(play_postgres: Play) -> None:
    """A deploy: one endpoint takes twelve seconds, and the others do not wait for it."""

    async def scenario(stage: Stage) -> None:
        world = stage.world
        slow, quick = "https://slow.example.com/cue", "https://quick.example.com/cue"
        for url in (slow, quick):
            await world.endpoint(url=url)
        stage.transport.will(slow, *[Answer(seconds=12)] * 40)
        stage.transport.will(quick, *[Answer(seconds=0.3)] * 40)
        old, new = (stage.dispatcher(cap=1, longest_sleep=HOUR) for _ in range(2))
        async with stage.delivering(old, straight=False):
            for _ in range(8):
                await world.report(world.milestone(await world.project()))
            old.work_for(await stage.lanes())
            await stage.later(timedelta(seconds=0.5))
            async with stage.delivering(new, straight=False):
                await stage.later()
                old.stop()
                before = len(stage.sent)
                # What PostgreSQL would announce.
                for _ in range(8):
                    await stage.later(timedelta(seconds=0.25))
                    new.workers_changed()
                to_quick = [each for each in stage.sent[before:] if each.request.url.text == quick]
                assert len(to_quick) >= 3
                await stage.later(2 * HOUR)
        assert {each.status for each in await world.deliveries()} == {DeliveryStatus.DELIVERED}
        assert set(stage.transport.most_in_flight.values()) == {1}
        assert len(stage.sent) == 16

    play_postgres(scenario)


def test_an_attempt_that_ends_while_the_lanes_are_released_is_noticed(
    play_postgres: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        leave = QueueRecords.leave

        async def slow(self: QueueRecords, worker: UUID, busy: Collection[Lane]) -> None:
            await stage.clock.wait(3)
            await leave(self, worker, busy)

        monkeypatch.setattr(QueueRecords, "leave", slow)
        await stage.world.endpoint()
        stage.transport.will(URL, Answer(seconds=2))
        async with stage.delivering():
            await stage.world.complete()
            await stage.later()
            began = stage.clock.now()
        assert (stage.clock.now() - began).total_seconds() == pytest.approx(3, abs=0.5)

    play_postgres(scenario)


def test_it_goes_even_while_a_receiver_hangs(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, HANGS)
        async with stage.delivering():
            await stage.world.complete()
            await stage.later()
            began = stage.clock.now()
        assert (stage.clock.now() - began).total_seconds() == pytest.approx(15, abs=0.1)

    play(scenario)


def test_it_goes_within_seconds_although_the_store_is_away_and_nothing_is_lost(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        world, watch = stage.world, stage.store.watch
        await world.endpoint()
        stage.transport.will(URL, Answer(seconds=3), *[500] * 20)
        async with stage.delivering(stage.dispatcher(attempts=2, cap=1)):
            for _ in range(6):
                await world.complete()
            await stage.later()
            watch.fails = lambda _: True
            began = stage.clock.now()
        assert (stage.clock.now() - began).total_seconds() <= 3 + 5 + 1
        watch.fails = lambda _: False
        await stage.later(2 * HOUR)
        await stage.take_over()
        async with stage.delivering():
            await stage.later(HOUR)
        statuses = [each.status for each in await world.deliveries()]
        assert set(statuses) <= {DeliveryStatus.DELIVERED, DeliveryStatus.FAILED}
        assert len(statuses) == 6

    with caplog.at_level(logging.WARNING):
        play(scenario)
    assert [each for each in caplog.messages if "event=left_without_word" in each]
    assert [each for each in caplog.messages if "event=outcomes_given_up count=1" in each]


def test_a_full_recorder_does_not_keep_it(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world, watch = stage.world, stage.store.watch
        await world.endpoint()
        async with stage.delivering(stage.dispatcher(attempts=1, cap=1)) as dispatcher:
            dispatcher._recorder.most_unrecorded = 1
            for _ in range(4):
                await world.complete()
            watch.fails = lambda _: True
            await stage.later(HOUR / 60)
            began = stage.clock.now()
        assert (stage.clock.now() - began).total_seconds() <= 6
        watch.fails = lambda _: False

    play_embedded(scenario)
