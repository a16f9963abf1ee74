"""Every use case with an error at every operation of the store: it is done whole or not at all.

`CUEPOST_TEST_STORE_ERRORS` says up to which operation; `all` means every one there is.
"""

import os
from contextlib import suppress

import pytest

from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.errors import Conflict, Gone, NotFound
from cuepost.ports.store import StoreUnavailable
from tests.engine.use_cases_to_disturb import CASES, Case, populated
from tests.support.engine_harness import HOUR, EngineHarness, RunScenarios, Scenario
from tests.support.watched_store import never

GIVEN = os.environ.get("CUEPOST_TEST_STORE_ERRORS", "50")
MOST = float("inf") if GIVEN == "all" else int(GIVEN)


def counted(run_scenarios: RunScenarios, case: Case) -> tuple[int, int]:
    """How many operations and commits it takes when nothing is wrong."""
    found: list[int] = []

    async def scenario(engine: EngineHarness) -> None:
        it, watch = await populated(engine), engine.store.watch
        watch.operations = watch.commits = 0
        await case(it)
        found.extend((watch.operations, watch.commits))

    run_scenarios(scenario)
    operations, commits = found
    return int(min(operations, MOST)), int(min(commits, MOST))


def failing(case: Case, place: int, *, commits: bool = False) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        it, watch = await populated(engine), engine.store.watch
        before = await engine.harness.dump()
        watch.operations = watch.commits = 0
        name = "refuses" if commits else "fails"
        setattr(watch, name, lambda number: number == place)
        with pytest.raises(StoreUnavailable):
            await case(it)
        setattr(watch, name, never)
        assert await engine.harness.dump() == before
        await case(it)
        await require_all_sent(engine)

    return scenario


def answered_to_no_caller(case: Case, place: int) -> Scenario:
    async def scenario(engine: EngineHarness) -> None:
        it, watch = await populated(engine), engine.store.watch
        watch.commits = 0
        watch.loses = lambda number: number == place
        with pytest.raises(StoreUnavailable):
            await case(it)
        watch.loses = never
        # It is done already, and some of them can be done only once.
        with suppress(Conflict, Gone, NotFound):
            await case(it)
        await require_all_sent(engine)

    return scenario


async def require_all_sent(engine: EngineHarness) -> None:
    harness = engine.harness
    waiting = [each for each in await harness.deliveries() if each.status not in FINAL]
    async with engine.delivering():
        await engine.later(HOUR)
    seen = {each.header("webhook-id") for each in engine.sent}
    assert seen == {str(each.event_id) for each in waiting}
    ended = {each.id: each.status for each in await harness.deliveries()}
    assert {ended[each.id] for each in waiting} <= {DeliveryStatus.DELIVERED}
    assert set(ended.values()) <= set(FINAL)


@pytest.mark.parametrize("case", CASES)
def test_an_error_at_any_operation_leaves_everything_as_it_was(
    run_embedded: RunScenarios, case: str
) -> None:
    operations, commits = counted(run_embedded, CASES[case])
    assert min(operations, commits) > 0
    run_embedded(
        *[failing(CASES[case], place) for place in range(1, operations + 1)],
        *[failing(CASES[case], place, commits=True) for place in range(1, commits + 1)],
    )


@pytest.mark.parametrize("case", CASES)
def test_a_commit_whose_result_is_lost_can_be_asked_for_again(
    run_embedded: RunScenarios, case: str
) -> None:
    _, commits = counted(run_embedded, CASES[case])
    assert commits
    run_embedded(*[answered_to_no_caller(CASES[case], place) for place in range(1, commits + 1)])
