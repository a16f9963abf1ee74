"""Announced endpoints are served without a look at all the others, which get theirs soon after."""

from datetime import datetime, timedelta

import pytest

from cuepost.adapters.storage.records.claims import Claims
from cuepost.ports.dispatch import BEGINNING, Claim
from cuepost.testing import Answer
from cuepost.tuning import LONGEST_WITHOUT_SCAN_SECONDS
from tests.support.engine_harness import MINUTE, EngineHarness, RunScenarios

COUNT = 40
CLAIM_SECONDS = 0.01
URL = "https://hooks.example.com/cue"
OTHER_URL = "https://other.example.com/cue"
LONGEST_WITHOUT_SCAN = timedelta(seconds=LONGEST_WITHOUT_SCAN_SECONDS)


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


def test_a_retry_is_found_when_it_is_due_beside_lanes_that_are_always_announced(
    run_embedded: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        announced = await engine.lanes()
        await engine.harness.endpoint("project.failed", url=OTHER_URL)
        engine.transport.will(OTHER_URL, 500)
        slow_down_claims(engine, monkeypatch)
        async with engine.delivering(direct=False) as dispatcher:
            await engine.harness.report(
                engine.harness.milestone(await engine.harness.project(), "failed")
            )
            dispatcher.work_for(await engine.lanes())
            await engine.later(MINUTE - timedelta(seconds=0.6))
            for _ in range(200):
                dispatcher.work_for(announced)
                await engine.later(timedelta(seconds=CLAIM_SECONDS / 2))
        first, second = (each for each in engine.sent if each.request.url.text == OTHER_URL)
        assert timedelta() <= second.at - first.at - MINUTE <= timedelta(seconds=4 * CLAIM_SECONDS)

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
