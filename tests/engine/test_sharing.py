"""Workers at one store share the endpoints that have something to send."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st

from cuepost.adapters.storage.tables import lanes
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine import lanes as engine_lanes
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.ports.dispatch import Lane, Share
from cuepost.testing import Answer
from cuepost.tuning import IDLE_LANE_CHECK_SECONDS, IDLE_LANE_KEPT_SECONDS
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios

LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)
ENDPOINTS, EACH = 12, 30


def test_a_worker_that_is_added_gets_its_share_of_busy_endpoints(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await populate(engine, endpoints=4, each=60, seconds=1)
        one, other = (engine.dispatcher(cap=1, lease=LEASE, longest_sleep=SECOND) for _ in range(2))
        async with engine.delivering(one):
            await engine.later(SECOND)
            assert await lanes_held(engine) == [4]
            async with engine.delivering(other):
                await engine.later(LEASE)
                assert await are_shared(engine, 4)
                await engine.later(MINUTE)
        assert len(engine.sent) == 240
        assert set(engine.transport.most_in_flight.values()) == {1}

    run_postgres(scenario)


def test_what_becomes_due_at_one_instant_is_shared(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        one, other = worker(engine), worker(engine)
        async with much_due_at_once(engine, one, other):
            assert await are_shared(engine, ENDPOINTS)
            await engine.later(MINUTE)
        assert len(engine.sent) == ENDPOINTS * EACH
        assert set(engine.transport.most_in_flight.values()) == {1}
        assert {each.status for each in await engine.harness.deliveries()} == {
            DeliveryStatus.DELIVERED
        }

    run_postgres(scenario)


def test_lanes_are_announced_to_a_new_worker_once_nothing_of_them_is_held(
    run_postgres: RunScenarios,
) -> None:
    """Neither the next heartbeat nor the next poll has to be waited for."""

    async def scenario(engine: EngineHarness) -> None:
        one, other = worker(engine), worker(engine)
        announced = Announced(one)
        async with much_due_at_once(engine, one):
            assert await lanes_held(engine) == [ENDPOINTS]
            async with engine.delivering(other, direct=False):
                await engine.later()
                one.workers_changed()
                await engine.later(SECOND)
                assert announced.lanes
                assert not any(one.lanes.owns(lane) for lane in announced.lanes)
                other.work_for(announced.lanes)
                await engine.later(SECOND)
                assert await are_shared(engine, ENDPOINTS)

    run_postgres(scenario)


def test_who_is_left_takes_the_lanes_of_a_worker_that_has_ended(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        one, other = worker(engine), worker(engine)
        async with much_due_at_once(engine, one, other):
            other.stop()
            await engine.later(SECOND)
            assert sum(await lanes_held(engine)) < ENDPOINTS
            one.workers_changed()
            await engine.later(SECOND)
            assert await lanes_held(engine) == [ENDPOINTS]
            await engine.later(MINUTE)
        assert len(engine.sent) == ENDPOINTS * EACH

    run_postgres(scenario)


def test_a_worker_keeps_a_lane_for_a_while_when_nothing_is_in_it(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await populate(engine, endpoints=1, each=1, seconds=0.1)
        async with engine.delivering(worker(engine)) as one:
            await engine.later(SECOND)
            one.work_for(())
            await engine.later(timedelta(seconds=IDLE_LANE_KEPT_SECONDS / 2))
            assert await lanes_held(engine) == [1]
            await engine.later(timedelta(seconds=IDLE_LANE_KEPT_SECONDS))
            one.work_for(())
            await engine.later(SECOND)
            assert await lanes_held(engine) == []

    run_postgres(scenario)


def test_a_worker_keeps_no_more_idle_lanes_than_a_number(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_lanes, "IDLE_LANES_KEPT", 3)

    async def scenario(engine: EngineHarness) -> None:
        await populate(engine, endpoints=8, each=1, seconds=0.1)
        async with engine.delivering(worker(engine)) as one:
            await engine.later(SECOND)
            assert await lanes_held(engine) == [8]
            await engine.later(timedelta(seconds=IDLE_LANE_CHECK_SECONDS))
            one.work_for(())
            await engine.later(SECOND)
            assert await lanes_held(engine) == [3]

    run_postgres(scenario)


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

    def __init__(self, worker: SharedDispatcher) -> None:
        self.lanes: set[Lane] = set()
        worker.lanes.announce = self._note

    def _note(self, announced: Collection[Lane]) -> None:
        self.lanes |= set(announced)


def worker(engine: EngineHarness) -> SharedDispatcher:
    """One that never looks for work unless it is told."""
    made = engine.dispatcher(cap=1, lease=LEASE, longest_sleep=HOUR)
    assert isinstance(made, SharedDispatcher)
    return made


@asynccontextmanager
async def much_due_at_once(engine: EngineHarness, *workers: Dispatcher) -> AsyncIterator[None]:
    """They know of one another by then, are told of it, and a second has passed."""
    async with AsyncExitStack() as running:
        for each in workers:
            await running.enter_async_context(engine.delivering(each, direct=False))
        await engine.later(LEASE)
        await populate(engine, ENDPOINTS, EACH, seconds=0.1)
        for each in workers:
            each.work_for(())
        await engine.later(SECOND)
        yield


async def populate(engine: EngineHarness, endpoints: int, each: int, *, seconds: float) -> None:
    """Queue deliveries to each endpoint; their receivers answer after this delay."""
    harness = engine.harness
    for number in range(endpoints):
        url = f"https://hooks{number}.example.com/cue"
        await harness.endpoint(url=url)
        engine.transport.will(url, *[Answer(seconds=seconds)] * each)
    for _ in range(each):
        await harness.report(harness.milestone(await harness.project()))


async def are_shared(engine: EngineHarness, total: int) -> bool:
    """About equally: which lanes there are is not for the test to choose."""
    held = await lanes_held(engine)
    return sum(held) == total and max(held) - min(held) <= 2


async def lanes_held(engine: EngineHarness) -> list[int]:
    """By each worker."""
    count = sa.func.count().label("total")
    found = await engine.rows(sa.select(count).select_from(lanes).group_by(lanes.c.worker_id))
    return [row.total for row in found]
