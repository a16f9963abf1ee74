"""What deliveries cost, in things that can be counted: a guard that no busy machine can fool.

Begins, statements and commits are counted, and hand-overs to another thread; on PostgreSQL, where
changes are held back and travel together, each trip to the server. The figures are what
the work takes today: fewer are an improvement, to be written down here; more have to be explained.
"""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from cuepost.application.milestone_batch import Milestone
from cuepost.ports.dispatch import Result
from cuepost.testing import Answer
from cuepost.tuning import RESULTS_AT_ONCE, RESULTS_AT_ONCE_ALONE
from tests.support.engine_harness import EngineHarness, RunScenarios
from tests.support.jumping_loop import AtOnce
from tests.support.other_process import OtherProcess
from tests.support.watched_store import Watch, never

URL = "https://hooks.example.com/cue"
MANY = 100
TO_ACCEPT = 15
TO_ACCEPT_AND_DELIVER = 26
# Begin, lock the project, was it reported before, who subscribes, write, commit.
TRIPS_TO_ACCEPT = 6
# Begin, switch off sorting, hold its lane, lease it, where to, accept in this lane from now on,
# commit; begin, end it, count it, commit.
TRIPS_TO_CLAIM_AND_DELIVER = 11
# What is it, where to; begin, end it, count it, commit.
TRIPS_TO_DELIVER_WHAT_WAS_HANDED_OVER = 6
TO_DELIVER_A_BACKLOG = 38


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., object]]:
    """What the embedded store actions to another thread."""
    handed: list[Callable[..., object]] = []
    run = AtOnce.run

    def noted(self: AtOnce, work: Callable[[], object]) -> object:
        handed.append(work)
        return run(self, work)

    monkeypatch.setattr(AtOnce, "run", noted)
    return handed


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the driver of PostgreSQL sends to the server and waits for."""
    sent: list[str] = []

    def overhear(kind: type[Any], name: str, text: Callable[..., str | None]) -> None:
        method = getattr(kind, name)

        async def overheard(self: Any, *values: Any, **options: Any) -> Any:
            if (said := text(self, *values)) is not None:
                sent.append(said)
            return await method(self, *values, **options)

        monkeypatch.setattr(kind, name, overheard)

    # With values it goes on to `_execute`.
    overhear(asyncpg.Connection, "execute", lambda _, query, *values: None if values else query)
    overhear(asyncpg.Connection, "_execute", lambda _, query, *rest: query)
    return sent


async def milestones_of(engine: EngineHarness, count: int) -> list[Milestone]:
    return [engine.harness.milestone(await engine.harness.project()) for _ in range(count)]


@pytest.mark.parametrize("count", [1, MANY])
def test_accepting(run_scenarios: RunScenarios, count: int) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        milestones = await milestones_of(engine, count)
        engine.store.watch = Watch()
        await engine.harness.report(*milestones)
        assert engine.store.watch.operations <= TO_ACCEPT

    run_scenarios(scenario)


@pytest.mark.parametrize(("count", "most_hops"), [(1, 1), (MANY, 12)])
def test_from_the_report_to_the_record_of_the_attempt(
    run_embedded: RunScenarios, hops: list[object], count: int, most_hops: int
) -> None:
    """A hundred cost as many statements as one, and one wait for the disk."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(engine.dispatcher(attempts=MANY, cap=MANY)):
            await engine.later()
            milestones = await milestones_of(engine, count)
            engine.store.watch = Watch()
            hops.clear()
            await engine.harness.report(*milestones)
            await engine.later()
            assert len(engine.sent) == count
            assert engine.store.watch.operations <= TO_ACCEPT_AND_DELIVER
            assert engine.store.watch.commits == 2
            assert len(hops) <= most_hops

    run_embedded(scenario)


def test_one_that_a_worker_has_to_claim(run_postgres: RunScenarios, trips: list[str]) -> None:
    """As in production: one process takes the report, another one is told of it and sends it."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        lanes = await engine.lanes()
        async with engine.delivering(direct=False) as dispatcher:
            await engine.later()
            for number in range(1, 4):
                milestones = await milestones_of(engine, 1)
                # Health is written once a second.
                await engine.later(timedelta(seconds=1))
                trips.clear()
                await engine.harness.report(*milestones)
                assert len(trips) <= TRIPS_TO_ACCEPT, trips
                trips.clear()
                dispatcher.work_for(lanes)
                await engine.later()
                assert len(engine.sent) == number
                assert len(trips) <= TRIPS_TO_CLAIM_AND_DELIVER, trips

    run_postgres(scenario)


def test_one_that_is_handed_over(run_postgres: RunScenarios, trips: list[str]) -> None:
    """As in production: one process takes the report, and the worker that has the lane sends it."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(direct=False) as dispatcher:
            await engine.harness.report(*await milestones_of(engine, 1))
            dispatcher.work_for(await engine.lanes())
            engine.store.handover = OtherProcess(dispatcher.hand_over)
            for number in range(2, 4):
                milestones = await milestones_of(engine, 1)
                await engine.later(timedelta(seconds=1))
                trips.clear()
                await engine.harness.report(*milestones)
                await engine.later()
                assert len(engine.sent) == number
                assert len(trips) <= TRIPS_TO_ACCEPT + TRIPS_TO_DELIVER_WHAT_WAS_HANDED_OVER, trips

    run_postgres(scenario)


def test_many_on_a_shared_store(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        async with engine.delivering(engine.dispatcher(attempts=MANY, cap=MANY)):
            await engine.later()
            # From then on the lane is this worker's.
            await engine.harness.report(*await milestones_of(engine, 1))
            await engine.later()
            milestones = await milestones_of(engine, MANY)
            engine.store.watch = Watch()
            await engine.harness.report(*milestones)
            await engine.later()
            assert len(engine.sent) == 1 + MANY
            assert engine.store.watch.operations <= TO_ACCEPT_AND_DELIVER

    run_postgres(scenario)


def test_a_backlog(run_scenarios: RunScenarios, hops: list[object]) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        await engine.harness.report(*await milestones_of(engine, MANY))
        engine.store.watch = Watch()
        hops.clear()
        async with engine.delivering(engine.dispatcher(attempts=MANY, cap=MANY)):
            await engine.later()
            assert len(engine.sent) == MANY
            assert engine.store.watch.operations <= TO_DELIVER_A_BACKLOG
            assert len(hops) <= 10

    run_scenarios(scenario)


def test_results_that_waited_for_the_store(run_scenarios: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        at_once = RESULTS_AT_ONCE_ALONE if engine.is_embedded else RESULTS_AT_ONCE
        count = at_once + MANY
        await engine.harness.endpoint()
        engine.transport.will(URL, *[Answer(seconds=1)] * count)
        dispatcher, groups = engine.dispatcher(attempts=count, cap=count), list[int]()
        written = dispatcher.recorder.written

        def noted(results: Sequence[Result]) -> None:
            groups.append(len(results))
            written(results)

        dispatcher.recorder.written = noted
        async with engine.delivering(dispatcher):
            await engine.later()
            await engine.harness.report(*await milestones_of(engine, count))
            engine.store.watch.fails = lambda _: True
            await engine.later(timedelta(seconds=2))
            engine.store.watch.fails = never
            await engine.later(timedelta(seconds=2))
            assert groups == [at_once, MANY]

    run_scenarios(scenario)
