"""What deliveries cost, in things that can be counted: a guard that no busy machine can fool.

Begins, statements and commits are counted, and hand-overs to another thread. The figures are what
the work takes today: fewer are an improvement, to be written down here; more have to be explained.
"""

from collections.abc import Callable

import pytest

from cuepost.application.milestone_book import Milestone
from tests.support.jumping_loop import AtOnce
from tests.support.stage import Play, Stage
from tests.support.watched_store import Watch

MANY = 100
TO_ACCEPT = 16
TO_ACCEPT_AND_DELIVER = 29
TO_CLAIM_AND_DELIVER_ONE = 42
TO_DELIVER_A_BACKLOG = 58


@pytest.fixture
def hops(monkeypatch: pytest.MonkeyPatch) -> list[Callable[..., object]]:
    """What the embedded store hands to another thread."""
    handed: list[Callable[..., object]] = []
    submit = AtOnce.submit

    def noted(self: AtOnce, work: Callable[..., object], *values: object) -> object:
        handed.append(work)
        return submit(self, work, *values)

    monkeypatch.setattr(AtOnce, "submit", noted)
    return handed


async def milestones_of(stage: Stage, count: int) -> list[Milestone]:
    return [stage.world.milestone(await stage.world.project()) for _ in range(count)]


@pytest.mark.parametrize("count", [1, MANY])
def test_accepting(play: Play, count: int) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        milestones = await milestones_of(stage, count)
        stage.store.watch = Watch()
        await stage.world.report(*milestones)
        assert stage.store.watch.operations <= TO_ACCEPT

    play(scenario)


@pytest.mark.parametrize(("count", "most_hops"), [(1, 2), (MANY, 11)])
def test_from_the_report_to_the_record_of_the_attempt(
    play_embedded: Play, hops: list[object], count: int, most_hops: int
) -> None:
    """A hundred cost as many statements as one, and two waits for the disk."""

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(stage.dispatcher(attempts=MANY, cap=MANY)):
            await stage.later()
            milestones = await milestones_of(stage, count)
            stage.store.watch = Watch()
            hops.clear()
            await stage.world.report(*milestones)
            await stage.later()
            assert len(stage.sent) == count
            assert stage.store.watch.operations <= TO_ACCEPT_AND_DELIVER
            assert stage.store.watch.commits == 2
            assert len(hops) <= most_hops

    play_embedded(scenario)


def test_one_that_a_worker_has_to_claim(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering():
            await stage.later()
            milestones = await milestones_of(stage, 1)
            stage.store.watch = Watch()
            await stage.world.report(*milestones)
            await stage.later()
            assert len(stage.sent) == 1
            assert stage.store.watch.operations <= TO_CLAIM_AND_DELIVER_ONE

    play_postgres(scenario)


def test_many_on_a_shared_store(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(stage.dispatcher(attempts=MANY, cap=MANY)):
            await stage.later()
            # From then on the lane is this worker's.
            await stage.world.report(*await milestones_of(stage, 1))
            await stage.later()
            milestones = await milestones_of(stage, MANY)
            stage.store.watch = Watch()
            await stage.world.report(*milestones)
            await stage.later()
            assert len(stage.sent) == 1 + MANY
            assert stage.store.watch.operations <= TO_ACCEPT_AND_DELIVER

    play_postgres(scenario)


def test_a_backlog(play: Play, hops: list[object]) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        await stage.world.report(*await milestones_of(stage, MANY))
        stage.store.watch = Watch()
        hops.clear()
        async with stage.delivering(stage.dispatcher(attempts=MANY, cap=MANY)):
            await stage.later()
            assert len(stage.sent) == MANY
            assert stage.store.watch.operations <= TO_DELIVER_A_BACKLOG
            assert len(hops) <= 10

    play(scenario)
