"""Announced endpoints are served without a look at all the others, which get theirs soon after."""

from datetime import datetime, timedelta

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.engine.intake import FullScan
from cuepost.ports.dispatch import BEGINNING, Claim, ScanProgress
from cuepost.testing import Answer, VirtualClock
from cuepost.tuning import LONGEST_WITHOUT_SCAN_SECONDS
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios

COUNT = 40
CLAIM_SECONDS = 0.01
URL = "https://hooks.example.com/cue"
OTHER_URL = "https://other.example.com/cue"
INSTANT = 0.001
LONGEST_WITHOUT_SCAN = timedelta(seconds=LONGEST_WITHOUT_SCAN_SECONDS)
NOTHING_DUE = ScanProgress(BEGINNING, None)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


def test_it_is_due_once_something_is(clock: VirtualClock) -> None:
    look = FullScan(clock, clock.now)
    look.done(ScanProgress(BEGINNING, clock.now() + HOUR))
    assert look.seconds_left == HOUR.total_seconds()
    clock.advance(HOUR.total_seconds() - INSTANT)
    assert not look.is_due
    clock.advance(INSTANT)
    assert look.is_due


def test_it_is_skipped_for_a_moment_only(clock: VirtualClock) -> None:
    look = FullScan(clock, clock.now)
    look.skipped(clock.monotonic())
    clock.advance(LONGEST_WITHOUT_SCAN_SECONDS - INSTANT)
    look.skipped(clock.monotonic())
    assert look.seconds_left == pytest.approx(INSTANT)
    assert not look.is_due
    clock.advance(INSTANT)
    assert look.is_due


def test_after_a_full_scan_nothing_is_skipped(clock: VirtualClock) -> None:
    look = FullScan(clock, clock.now)
    look.skipped(clock.monotonic())
    look.done(NOTHING_DUE)
    clock.advance(HOUR.total_seconds())
    assert not look.is_due


def test_it_is_due_while_it_is_halfway(clock: VirtualClock) -> None:
    look = FullScan(clock, clock.now)
    look.done(ScanProgress(1, None))
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


def test_who_is_announced_is_served_without(
    run_scenarios: RunScenarios, claims: list[Claim]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(direct=False) as dispatcher:
            await engine.later(MINUTE)
            await engine.harness.complete()
            lanes = await engine.lanes()
            claims.clear()
            dispatcher.work_for(lanes)
            await engine.later()
            sent, asked = len(engine.sent), [each.scan_after for each in claims]
            await engine.later(LONGEST_WITHOUT_SCAN)
            later = [each.scan_after for each in claims]
        assert (sent, asked, later) == (1, [None], [None, BEGINNING])

    run_scenarios(scenario)


def slow_down_claims(engine: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claims.claim

    async def slow(self: Claims, wanted: Claim, now: datetime) -> object:
        await engine.clock.wait(CLAIM_SECONDS)
        return await claim(self, wanted, now)

    monkeypatch.setattr(Claims, "claim", slow)


def test_a_lane_that_is_never_announced_is_found_beside_lanes_that_always_are(
    run_embedded: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        announced = await engine.lanes()
        await harness.endpoint("project.failed", url=OTHER_URL)
        slow_down_claims(engine, monkeypatch)
        async with engine.delivering(direct=False) as dispatcher:
            await engine.later(MINUTE)
            dispatcher.work_for(announced)
            await engine.later()
            await harness.report(harness.milestone(await harness.project(), "failed"))
            began = engine.clock.now()
            for _ in range(200):
                dispatcher.work_for(announced)
                await engine.later(timedelta(seconds=CLAIM_SECONDS / 2))
        [found] = [each for each in engine.sent if each.request.url.text == OTHER_URL]
        assert found.at - began <= LONGEST_WITHOUT_SCAN + timedelta(seconds=3 * CLAIM_SECONDS)

    run_embedded(scenario)


def test_attempts_that_begin_during_a_claim_cause_no_full_scan(
    run_embedded: RunScenarios, claims: list[Claim], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others wait behind them, but only in a second someone has to see to that."""

    async def scenario(engine: EngineHarness) -> None:
        slow_down_claims(engine, monkeypatch)
        engine.transport.will(URL, *(Answer(seconds=0.004) for _ in range(COUNT)))
        await engine.harness.endpoint()
        projects = [await engine.harness.project() for _ in range(COUNT)]
        await engine.harness.report(*map(engine.harness.milestone, projects))
        async with engine.delivering(engine.dispatcher(cap=2), direct=False):
            await engine.later(LONGEST_WITHOUT_SCAN)
        assert len(engine.sent) == COUNT
        assert [each for each in claims if not each.woken] == claims[:1]

    run_embedded(scenario)
