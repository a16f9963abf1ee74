"""A worker that is told to stop finishes what is in flight, gives back the rest, and goes."""

import logging

import pytest

from cuepost.domain.delivery import DeliveryStatus
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
