"""Thirty days by chance: whatever happens, the promises are kept. A failing seed repeats exactly.

`CUEPOST_SIMULATION_SEEDS` says how many seeds, `CUEPOST_SIMULATION_FIRST` which one is the first.
"""

import os
from collections.abc import Iterable

import pytest

from tests.simulation.simulation import simulated
from tests.support.engine_harness import EngineHarness, RunScenarios, Scenario

SEEDS = int(os.environ.get("CUEPOST_SIMULATION_SEEDS", "300"))
FIRST = int(os.environ.get("CUEPOST_SIMULATION_FIRST", "1"))
GROUP = 25
ON_POSTGRESQL = 4


Courses = dict[int, list[str]]


def simulate(
    run_scenarios: RunScenarios, seeds: Iterable[int], workers: int | None = None
) -> Courses:
    """The courses of events, when everything was kept."""
    courses: Courses = {}

    def scenario(seed: int) -> Scenario:
        async def run(engine: EngineHarness) -> None:
            courses[seed] = []
            broken, trace = await simulated(seed, engine, workers)
            courses[seed] += trace
            courses[seed] += [f"{each.at} {each.request.url.text}" for each in engine.sent]
            assert not broken, "\n".join([*broken, *trace])

        return run

    try:
        run_scenarios(*map(scenario, seeds))
    except BaseException as error:
        last = list(courses)[-1]
        error.add_note(f"seed {last}: CUEPOST_SIMULATION_FIRST={last} CUEPOST_SIMULATION_SEEDS=1")
        raise
    return courses


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, GROUP))
def test_every_promise_is_kept_on_the_embedded_store(
    run_embedded: RunScenarios, first: int
) -> None:
    simulate(run_embedded, range(first, min(first + GROUP, FIRST + SEEDS)))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + min(SEEDS, ON_POSTGRESQL)))
def test_every_promise_is_kept_by_two_workers_on_postgresql(
    run_postgres: RunScenarios, seed: int
) -> None:
    simulate(run_postgres, [seed], workers=2)


def test_the_same_seed_gives_the_same_course_of_events(run_embedded: RunScenarios) -> None:
    alone = simulate(run_embedded, [FIRST + 2])
    among_others = simulate(run_embedded, range(FIRST, FIRST + 3))
    assert alone[FIRST + 2] == among_others[FIRST + 2]
