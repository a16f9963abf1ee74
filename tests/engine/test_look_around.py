"""Announced endpoints are served without a look at all the others, which get theirs soon after."""

from datetime import datetime, timedelta

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.engine.look_around import LookAround
from cuepost.ports.dispatch import BEGINNING, Around, Claim
from cuepost.testing import Answer, VirtualClock
from cuepost.tuning import LONGEST_LEFT_OUT_SECONDS
from tests.support.stage import HOUR, MINUTE, Play, Stage

COUNT = 40
CLAIM_SECONDS = 0.01
URL = "https://hooks.example.com/cue"
OTHER_URL = "https://other.example.com/cue"
INSTANT = 0.001
LONGEST_LEFT_OUT = timedelta(seconds=LONGEST_LEFT_OUT_SECONDS)
NOTHING_DUE = Around(BEGINNING, None)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_it_is_due_once_something_is(clock: VirtualClock) -> None:
    look = LookAround(clock)
    look.done(Around(BEGINNING, clock.now() + HOUR))
    assert look.seconds_left == HOUR.total_seconds()
    clock.advance(HOUR.total_seconds() - INSTANT)
    assert not look.is_due
    clock.advance(INSTANT)
    assert look.is_due


def test_it_is_left_out_for_a_moment_only(clock: VirtualClock) -> None:
    look = LookAround(clock)
    look.left_out(clock.monotonic())
    clock.advance(LONGEST_LEFT_OUT_SECONDS - INSTANT)
    look.left_out(clock.monotonic())
    assert look.seconds_left == pytest.approx(INSTANT)
    assert not look.is_due
    clock.advance(INSTANT)
    assert look.is_due


def test_who_has_looked_around_has_left_out_nothing(clock: VirtualClock) -> None:
    look = LookAround(clock)
    look.left_out(clock.monotonic())
    look.done(NOTHING_DUE)
    clock.advance(HOUR.total_seconds())
    assert not look.is_due


def test_it_is_due_while_it_is_halfway(clock: VirtualClock) -> None:
    look = LookAround(clock)
    look.done(Around(1, None))
    assert look.is_due
    look.done(NOTHING_DUE)
    assert not look.is_due


@pytest.fixture
def claims(monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    """What the dispatcher asks the queue for."""
    asked: list[Claim] = []
    claim = Claims.claim

    async def noted(self: Claims, wanted: Claim, now: datetime) -> object:
        asked.append(wanted)
        return await claim(self, wanted, now)

    monkeypatch.setattr(Claims, "claim", noted)
    return asked


def test_who_is_announced_is_served_without(play: Play, claims: list[Claim]) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(straight=False) as dispatcher:
            await stage.later(MINUTE)
            await stage.world.complete()
            lanes = await stage.lanes()
            claims.clear()
            dispatcher.work_for(lanes)
            await stage.later()
            sent, asked = len(stage.sent), [each.behind for each in claims]
            await stage.later(LONGEST_LEFT_OUT)
            later = [each.behind for each in claims]
        assert (sent, asked, later) == (1, [None], [None, BEGINNING])

    play(scenario)


def slow_down_claims(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claims.claim

    async def slow(self: Claims, wanted: Claim, now: datetime) -> object:
        await stage.clock.wait(CLAIM_SECONDS)
        return await claim(self, wanted, now)

    monkeypatch.setattr(Claims, "claim", slow)


def test_who_was_never_announced_is_found_beside_those_who_always_are(
    play_embedded: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        announced = await stage.lanes()
        await world.endpoint("project.failed", url=OTHER_URL)
        slow_down_claims(stage, monkeypatch)
        async with stage.delivering(straight=False) as dispatcher:
            await stage.later(MINUTE)
            dispatcher.work_for(announced)
            await stage.later()
            await world.report(world.milestone(await world.project(), "failed"))
            began = stage.clock.now()
            for _ in range(200):
                dispatcher.work_for(announced)
                await stage.later(timedelta(seconds=CLAIM_SECONDS / 2))
        [found] = [each for each in stage.sent if each.request.url.text == OTHER_URL]
        assert found.at - began <= LONGEST_LEFT_OUT + timedelta(seconds=3 * CLAIM_SECONDS)

    play_embedded(scenario)


def test_attempts_that_begin_during_a_claim_make_nobody_look_around(
    play_embedded: Play, claims: list[Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait behind them, but only in a second somebody has to see to that."""

    async def scenario(stage: Stage) -> None:
        slow_down_claims(stage, monkeypatch)
        stage.transport.will(URL, *(Answer(seconds=0.004) for _ in range(COUNT)))
        await stage.world.endpoint()
        projects = [await stage.world.project() for _ in range(COUNT)]
        await stage.world.report(*map(stage.world.milestone, projects))
        async with stage.delivering(stage.dispatcher(cap=2), straight=False):
            await stage.later(LONGEST_LEFT_OUT)
        assert len(stage.sent) == COUNT
        assert [each for each in claims if not each.hints] == claims[:1]

    play_embedded(scenario)
