"""Shows that the simulation can find bugs: each deliberate fault is found, and says by which seed.

The seeds are those of test_simulation, where the same code without the fault keeps every promise.
`pytest -rP` shows them. `CUEPOST_SIMULATION_FIRST` says where to begin.
"""

import os
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress

import pytest

from tests.simulation import faults_in_sending, faults_in_storing
from tests.simulation.deliberate_faults import FAULTS, Fault
from tests.simulation.simulation import simulated
from tests.support.engine_harness import EngineHarness, RunScenarios, Scenario

FIRST = int(os.environ.get("CUEPOST_SIMULATION_FIRST", "1"))
SEEDS = 300
# They enter their faults when they are loaded.
PARTS = (faults_in_sending, faults_in_storing)


class Found(Exception):
    """Not one seed more."""


def first_broken(run_scenarios: RunScenarios, seeds: Iterable[int]) -> tuple[int, list[str]] | None:
    """The first of these seeds for which a promise is not kept."""
    found: list[tuple[int, list[str]]] = []

    def scenario(seed: int) -> Scenario:
        async def run(engine: EngineHarness) -> None:
            broken, _ = await simulated(seed, engine)
            if broken:
                found.append((seed, broken))
                raise Found

        return run

    with suppress(Found):
        run_scenarios(*map(scenario, seeds))
    return found[0] if found else None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_it_is_found(
    run_embedded: RunScenarios,
    fault: Fault,
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    with monkeypatch.context() as patch:
        fault.put_in(patch)
        # The one that found it before comes first; should it not any more, all others follow.
        seeds = sorted(range(FIRST, FIRST + SEEDS), key=lambda seed: seed != fault.seed)
        found = first_broken(run_embedded, seeds)
    assert found is not None, f"{SEEDS} seeds have not found it"
    seed, broken = found
    record_property("seed", seed)
    sys.stdout.write(f"found by seed {seed}: {broken[0]}\n")
    assert {each.partition(" ")[0] for each in broken} & fault.breaks, broken
    assert first_broken(run_embedded, [seed]) is None
