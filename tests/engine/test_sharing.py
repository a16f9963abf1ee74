"""Workers at one store share the endpoints that have something to send."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cuepost.adapters.storage.tables import lanes
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.dispatch import Lane, Share
from cuepost.testing import Answer
from cuepost.tuning import IDLE_LANE_KEPT_SECONDS
from tests.support.stage import HOUR, MINUTE, Play, Stage

LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)
ENDPOINTS, EACH = 12, 30


def test_a_worker_that_is_added_gets_its_share_of_busy_endpoints(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await furnish(stage, endpoints=4, each=60, seconds=1)
        one, other = (stage.dispatcher(cap=1, lease=LEASE, longest_sleep=SECOND) for _ in range(2))
        async with stage.delivering(one):
            await stage.later(SECOND)
            assert await lanes_held(stage) == [4]
            async with stage.delivering(other):
                await stage.later(LEASE)
                assert await are_shared(stage, 4)
                await stage.later(MINUTE)
        assert len(stage.sent) == 240
        assert set(stage.transport.most_in_flight.values()) == {1}

    play_postgres(scenario)


def test_what_becomes_due_at_one_instant_is_shared(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        async with much_due_at_once(stage, one, other):
            assert await are_shared(stage, ENDPOINTS)
            await stage.later(MINUTE)
        assert len(stage.sent) == ENDPOINTS * EACH
        assert set(stage.transport.most_in_flight.values()) == {1}
        assert {each.status for each in await stage.world.deliveries()} == {
            DeliveryStatus.DELIVERED
        }

    play_postgres(scenario)


def test_lanes_are_announced_to_a_new_worker_once_nothing_of_them_is_held(
    play_postgres: Play,
) -> None:
    """Neither the next heartbeat nor the next poll has to be waited for."""

    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        announced = Announced(one)
        async with much_due_at_once(stage, one):
            assert await lanes_held(stage) == [ENDPOINTS]
            async with stage.delivering(other, straight=False):
                await stage.later()
                one.workers_changed()
                await stage.later(SECOND)
                assert announced.lanes
                assert not any(one.owns(lane) for lane in announced.lanes)
                other.work_for(announced.lanes)
                await stage.later(SECOND)
                assert await are_shared(stage, ENDPOINTS)

    play_postgres(scenario)


def test_who_is_left_takes_the_lanes_of_a_worker_that_has_ended(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        async with much_due_at_once(stage, one, other):
            other.stop()
            await stage.later(SECOND)
            assert sum(await lanes_held(stage)) < ENDPOINTS
            one.workers_changed()
            await stage.later(SECOND)
            assert await lanes_held(stage) == [ENDPOINTS]
            await stage.later(MINUTE)
        assert len(stage.sent) == ENDPOINTS * EACH

    play_postgres(scenario)


def test_a_worker_keeps_a_lane_for_a_while_when_nothing_is_in_it(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await furnish(stage, endpoints=1, each=1, seconds=0.1)
        async with stage.delivering(worker(stage)) as one:
            await stage.later(SECOND)
            one.work_for(())
            await stage.later(timedelta(seconds=IDLE_LANE_KEPT_SECONDS / 2))
            assert await lanes_held(stage) == [1]
            await stage.later(timedelta(seconds=IDLE_LANE_KEPT_SECONDS))
            one.work_for(())
            await stage.later(SECOND)
            assert await lanes_held(stage) == []

    play_postgres(scenario)


@given(
    workers=st.integers(min_value=1, max_value=32),
    first=st.integers(min_value=1, max_value=2**31 - 1),
    step=st.sampled_from([1, 2, 3, 5, 10, 100]),
)
def test_every_lane_is_in_the_share_of_one_worker_and_shares_are_even(
    workers: int, first: int, step: int
) -> None:
    """Whichever lanes are busy: all of them, every second one, every tenth one."""
    lanes = range(first, first + 64 * workers * step, step)
    owned = [sum(Share(rank, workers).has(lane) for lane in lanes) for rank in range(workers)]
    assert sum(owned) == len(lanes)
    assert max(owned) <= 2 * 64


class Announced:
    """The lanes that a worker has let go for others."""

    def __init__(self, worker: Dispatcher) -> None:
        self.lanes: set[Lane] = set()
        worker.announce_to(self._note)

    def _note(self, announced: Collection[Lane]) -> None:
        self.lanes |= set(announced)


def worker(stage: Stage) -> Dispatcher:
    """One that never looks for work unless it is told."""
    return stage.dispatcher(cap=1, lease=LEASE, longest_sleep=HOUR)


@asynccontextmanager
async def much_due_at_once(stage: Stage, *workers: Dispatcher) -> AsyncIterator[None]:
    """They know of one another by then, are told of it, and a second has passed."""
    async with AsyncExitStack() as running:
        for each in workers:
            await running.enter_async_context(stage.delivering(each, straight=False))
        await stage.later(LEASE)
        await furnish(stage, ENDPOINTS, EACH, seconds=0.1)
        for each in workers:
            each.work_for(())
        await stage.later(SECOND)
        yield


async def furnish(stage: Stage, endpoints: int, each: int, *, seconds: float) -> None:
    """So many deliveries to each of them, whose receivers take that long."""
    world = stage.world
    for number in range(endpoints):
        url = f"https://hooks{number}.example.com/cue"
        await world.endpoint(url=url)
        stage.transport.will(url, *[Answer(seconds=seconds)] * each)
    for _ in range(each):
        await world.report(world.milestone(await world.project()))


async def are_shared(stage: Stage, total: int) -> bool:
    """About equally: which lanes there are is not for the test to choose."""
    held = await lanes_held(stage)
    return sum(held) == total and max(held) - min(held) <= 2


async def lanes_held(stage: Stage) -> list[int]:
    """By each worker."""
    count = sa.func.count().label("total")
    found = await stage.rows(sa.select(count).select_from(lanes).group_by(lanes.c.worker_id))
    return [row.total for row in found]
