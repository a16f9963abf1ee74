"""Thirty days by chance: whatever happens, the promises are kept. A failing seed repeats exactly.

`CUEPOST_SIMULATION_SEEDS` says how many seeds, `CUEPOST_SIMULATION_FIRST` which one is the first.
"""

import os

import pytest

from tests.simulation.simulation import simulated
from tests.support.stage import Play, Stage

SEEDS = int(os.environ.get("CUEPOST_SIMULATION_SEEDS", "300"))
FIRST = int(os.environ.get("CUEPOST_SIMULATION_FIRST", "1"))
GROUP = 25
ON_POSTGRESQL = 4


def simulate(play: Play, seed: int, workers: int = 1) -> list[str]:
    """The course of events, when everything was kept."""
    course: list[str] = []

    async def scenario(stage: Stage) -> None:
        broken, trace = await simulated(seed, stage, workers)
        course.extend([*trace, *(f"{each.at} {each.request.url.text}" for each in stage.sent)])
        told = "\n".join([f"seed {seed} (CUEPOST_SIMULATION_FIRST={seed})", *broken, *trace])
        assert not broken, told

    try:
        play(scenario)
    except BaseException as error:
        error.add_note(f"seed {seed}: CUEPOST_SIMULATION_FIRST={seed} CUEPOST_SIMULATION_SEEDS=1")
        raise
    return course


@pytest.mark.parametrize("first", range(FIRST, FIRST + SEEDS, GROUP))
def test_every_promise_is_kept_on_the_embedded_store(play_embedded: Play, first: int) -> None:
    for seed in range(first, min(first + GROUP, FIRST + SEEDS)):
        simulate(play_embedded, seed)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + min(SEEDS, ON_POSTGRESQL)))
def test_every_promise_is_kept_by_two_workers_on_postgresql(play_postgres: Play, seed: int) -> None:
    simulate(play_postgres, seed, workers=2)


def test_the_same_seed_gives_the_same_course_of_events(play_embedded: Play) -> None:
    assert simulate(play_embedded, FIRST) == simulate(play_embedded, FIRST)
