"""What deliveries cost, in things that can be counted: a guard that no busy machine can fool.

Begins, statements and commits are counted, and hand-overs to another thread; on PostgreSQL, where
changes are held back and travel together, each trip to the server. The figures are what
the work takes today: fewer are an improvement, to be written down here; more have to be explained.
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from cuepost.application.milestone_book import Milestone
from tests.support.jumping_loop import AtOnce
from tests.support.other_process import OtherProcess
from tests.support.stage import Play, Stage
from tests.support.watched_store import Watch

MANY = 100
TO_ACCEPT = 15
TO_ACCEPT_AND_DELIVER = 26
# Begin, lock the project, was it reported before, who subscribes, write, commit.
TRIPS_TO_ACCEPT = 6
# Begin, hold its lane, lease it, where to, accept in this lane from now on, commit; begin, is it
# still ours, write, commit.
TRIPS_TO_CLAIM_AND_DELIVER = 10
# What is it, where to; begin, is it still ours, write, commit.
TRIPS_TO_DELIVER_WHAT_WAS_HANDED_OVER = 6
TO_DELIVER_A_BACKLOG = 38


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


@pytest.mark.parametrize(("count", "most_hops"), [(1, 1), (MANY, 12)])
def test_from_the_report_to_the_record_of_the_attempt(
    play_embedded: Play, hops: list[object], count: int, most_hops: int
) -> None:
    """A hundred cost as many statements as one, and one wait for the disk."""

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


def test_one_that_a_worker_has_to_claim(play_postgres: Play, trips: list[str]) -> None:
    """As in production: one process takes the report, another one is told of it and sends it."""

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        lanes = await stage.lanes()
        async with stage.delivering(straight=False) as dispatcher:
            await stage.later()
            for number in range(1, 4):
                milestones = await milestones_of(stage, 1)
                # Health is written once a second.
                await stage.later(timedelta(seconds=1))
                trips.clear()
                await stage.world.report(*milestones)
                assert len(trips) <= TRIPS_TO_ACCEPT, trips
                trips.clear()
                dispatcher.work_for(lanes)
                await stage.later()
                assert len(stage.sent) == number
                assert len(trips) <= TRIPS_TO_CLAIM_AND_DELIVER, trips

    play_postgres(scenario)


def test_one_that_is_handed_over(play_postgres: Play, trips: list[str]) -> None:
    """As in production: one process takes the report, and the worker that has the lane sends it."""

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        async with stage.delivering(straight=False) as dispatcher:
            await stage.world.report(*await milestones_of(stage, 1))
            dispatcher.work_for(await stage.lanes())
            stage.store.handover = OtherProcess(dispatcher.hand_over)
            for number in range(2, 4):
                milestones = await milestones_of(stage, 1)
                await stage.later(timedelta(seconds=1))
                trips.clear()
                await stage.world.report(*milestones)
                await stage.later()
                assert len(stage.sent) == number
                assert len(trips) <= TRIPS_TO_ACCEPT + TRIPS_TO_DELIVER_WHAT_WAS_HANDED_OVER, trips

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
