"""The store fails at the N-th operation, for every N: nothing is lost, and little is sent twice.

`CUEPOST_TEST_STORE_ERRORS` says up to which operation; `all` means every one there is.
"""

import os
from collections import Counter
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.storage.records import outcomes, sqlite_outcomes
from cuepost.application.milestone_batch import Milestone
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.ports.dispatch import Result
from cuepost.ports.store import Contention, KeyTaken, StoreUnavailable
from cuepost.testing import Answer
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios, Scenario
from tests.support.watched_store import Fault, never

URLS = [f"https://hooks{number}.example.com/cue" for number in range(2)]
LEASE = 2 * MINUTE
AWAY = timedelta(seconds=4)
MOST = os.environ.get("CUEPOST_TEST_STORE_ERRORS", "50")


async def eventful(
    engine: EngineHarness,
    *,
    fails: Fault = never,
    refuses: Fault = never,
    loses: Fault = never,
    shared: bool | None = None,
) -> tuple[int, int]:
    """Two endpoints, one of which fails at first; a caller that repeats what was not answered.

    How many operations and commits it took.
    """
    harness, watch = engine.harness, engine.store.watch
    for url in URLS:
        await harness.endpoint(url=url)
    milestones = [harness.milestone(await harness.project()) for _ in range(3)]
    engine.transport.will(URLS[0], 500, 500)
    async with engine.delivering(engine.dispatcher(lease=LEASE, shared=shared)):
        await engine.later()
        watch.operations = watch.commits = 0
        watch.fails, watch.refuses, watch.loses = fails, refuses, loses
        for milestone in milestones:
            await _reported(engine, milestone)
            await engine.later(timedelta(seconds=2))
        await engine.later(10 * MINUTE)
    made = watch.operations, watch.commits
    faults, watch.fails = (fails, refuses, loses), never
    assert watch.failed or faults == (never, never, never)
    deliveries = await harness.deliveries()
    assert [each.status for each in deliveries] == [DeliveryStatus.DELIVERED] * 6
    attempts = [len(await engine.attempts(each.id)) for each in deliveries]
    assert sum(attempts) == 8
    seen = {(each.request.url.text, each.header("webhook-id")) for each in engine.sent}
    assert seen == {(url, str(each.event_id)) for url in URLS for each in deliveries}
    return made


async def _reported(engine: EngineHarness, milestone: Milestone) -> None:
    while True:
        try:
            await engine.harness.report(milestone)
        except StoreUnavailable:
            await engine.clock.wait(1)
        else:
            return


def failing_once(place: int) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        await eventful(engine, fails=lambda number: number == place)
        # The store refuses before it does anything, so results are written later, and once.
        assert len(engine.sent) == 8

    return scenario


def away_from(place: int) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        ends: list[datetime] = []

        def fails(number: int) -> bool:
            if number == place:
                ends.append(engine.clock.now() + AWAY)
            return bool(ends) and engine.clock.now() < ends[-1]

        await eventful(engine, fails=fails)
        assert len(engine.sent) == 8

    return scenario


def losing_the_answer(place: int) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        # Between a process and its own file no answer is lost; here it stands for a database.
        await eventful(engine, loses=lambda number: number == place, shared=True)
        assert len(engine.sent) <= 8 + 2

    return scenario


def refusing(place: int) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        await eventful(engine, refuses=lambda number: number == place)
        assert len(engine.sent) == 8

    return scenario


def everything(run_scenarios: RunScenarios) -> tuple[int, int]:
    """How many operations and commits there are, as far as they are asked for."""
    found: list[int] = []

    async def scenario(engine: EngineHarness) -> None:
        found.extend(await eventful(engine))

    run_scenarios(scenario)
    most = max(found) if MOST == "all" else int(MOST)
    operations, commits = (min(each, most) for each in found)
    return operations, commits


def test_an_error_at_the_nth_operation_loses_nothing_and_sends_nothing_twice(
    run_embedded: RunScenarios,
) -> None:
    operations, _ = everything(run_embedded)
    run_embedded(*[failing_once(place) for place in range(1, operations + 1)])


def test_a_store_that_is_away_for_seconds_from_the_nth_operation_on_loses_nothing(
    run_embedded: RunScenarios,
) -> None:
    operations, _ = everything(run_embedded)
    run_embedded(*[away_from(place) for place in range(1, operations + 1, 2)])


def test_an_answer_that_is_lost_after_the_nth_commit_loses_nothing(
    run_embedded: RunScenarios,
) -> None:
    _, commits = everything(run_embedded)
    run_embedded(*[losing_the_answer(place) for place in range(1, commits + 1)])


def test_a_commit_that_fails_loses_nothing(run_embedded: RunScenarios) -> None:
    _, commits = everything(run_embedded)
    run_embedded(*[refusing(place) for place in range(1, commits + 1)])


@pytest.mark.parametrize("kind", [failing_once, away_from])
def test_so_it_is_on_postgresql(run_postgres: RunScenarios, kind: object) -> None:
    assert callable(kind)
    run_postgres(*[kind(place) for place in range(3, 51, 12)])


REFUSALS = [
    ZeroDivisionError("a bug"),
    KeyTaken("UNIQUE constraint failed"),
    Contention("a deadlock"),
    StoreUnavailable("an I/O error in one page"),
]


@pytest.mark.parametrize("error", REFUSALS, ids=lambda error: type(error).__name__)
def test_one_result_that_the_store_refuses_holds_up_no_other(
    run_embedded: RunScenarios,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
) -> None:
    row_of, poison = outcomes.ended_row, set[object]()

    def refusing(each: Result, now: datetime) -> tuple[Any, ...]:
        if not poison:
            poison.add(each.assignment.delivery_id)
        if each.assignment.delivery_id in poison:
            raise error
        return row_of(each, now)

    for module in (outcomes, sqlite_outcomes):
        monkeypatch.setattr(module, "ended_row", refusing)

    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint(url=URLS[0])
        async with engine.delivering():
            for _ in range(5):
                await harness.complete()
            for _ in range(15):
                await engine.later(timedelta(seconds=1))
                await harness.complete()
            await engine.later(timedelta(seconds=1))
            statuses = Counter(each.status for each in await harness.deliveries())
            assert statuses == {DeliveryStatus.DELIVERED: 19, DeliveryStatus.PENDING: 1}
            monkeypatch.undo()
            await engine.later(HOUR)
            statuses = Counter(each.status for each in await harness.deliveries())
            assert statuses == {DeliveryStatus.DELIVERED: 20}
            [refused] = [each for each in await harness.deliveries() if each.id in poison]
            made = [each.outcome for each in await engine.attempts(refused.id)]
            assert made == [Outcome.INTERRUPTED, Outcome.DELIVERED]

    run_embedded(scenario)
    [line] = [each for each in caplog.messages if "event=outcome_set_aside" in each]
    assert f"delivery={next(iter(poison))} budget=1 attempt=1 outcome=delivered" in line


def test_a_store_that_is_away_for_long_has_no_result_set_aside(
    run_embedded: RunScenarios, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint(url=URLS[0])
        engine.transport.will(URLS[0], *[Answer(seconds=1)] * 5)
        async with engine.delivering():
            for _ in range(5):
                await engine.harness.complete()
            engine.store.watch.fails = lambda _: True
            await engine.later(HOUR)
            engine.store.watch.fails = never
            await engine.later(MINUTE)
        statuses = Counter(each.status for each in await engine.harness.deliveries())
        assert (statuses, len(engine.sent)) == ({DeliveryStatus.DELIVERED: 5}, 5)

    run_embedded(scenario)
    assert not [each for each in caplog.messages if "event=outcome_set_aside" in each]


def test_two_results_of_one_attempt_in_one_group_are_both_on_record(
    run_scenarios: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However they came about: neither is written twice, and nothing waits for them."""

    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint(url=URLS[0])
        dispatcher = engine.dispatcher()
        put = dispatcher.recorder.put

        def twice(worker: UUID, result: Result) -> None:
            later = replace(result.attempt, started_at=result.attempt.started_at + AWAY)
            put(worker, result)
            put(worker, replace(result, attempt=later))

        monkeypatch.setattr(OutcomeRecorder, "put", lambda _, *what: twice(*what))
        async with engine.delivering(dispatcher):
            await harness.complete()
            await engine.later(MINUTE)
            await harness.complete()
            await engine.later(MINUTE)
        for delivery in await harness.deliveries():
            assert delivery.status is DeliveryStatus.DELIVERED
            outcomes = [each.outcome for each in await engine.attempts(delivery.id)]
            assert sorted(outcomes) == [Outcome.DELIVERED, Outcome.SUPERSEDED]

    run_scenarios(scenario)
