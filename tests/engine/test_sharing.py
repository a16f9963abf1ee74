"""Workers at one store share the endpoints that have something to send."""

from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.tables import lanes
from cuepost.domain.delivery import DeliveryStatus
from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.dispatch import Lane
from cuepost.testing import Answer
from cuepost.tuning import HEARTBEATS_PER_LEASE
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
                assert await lanes_held(stage) == [2, 2]
                await stage.later(MINUTE)
        assert len(stage.sent) == 240
        assert set(stage.transport.most_in_flight.values()) == {1}

    play_postgres(scenario)


def test_what_becomes_due_at_one_instant_is_shared_soon(play_postgres: Play) -> None:
    """Neither the next heartbeat nor the next poll has to be waited for."""

    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        one.offer_to(other.work_for)
        other.offer_to(one.work_for)
        async with much_due_at_once(stage, one, other):
            assert await lanes_held(stage) == [ENDPOINTS // 2] * 2
            await stage.later(MINUTE)
        assert len(stage.sent) == ENDPOINTS * EACH
        assert set(stage.transport.most_in_flight.values()) == {1}
        assert {each.status for each in await stage.world.deliveries()} == {
            DeliveryStatus.DELIVERED
        }

    play_postgres(scenario)


def test_endpoints_are_offered_once_nothing_of_them_is_held_any_more(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        offered = Offered(one)
        async with much_due_at_once(stage, one, other):
            assert len(offered.lanes) == ENDPOINTS // 2
            assert await lanes_held(stage) == [ENDPOINTS // 2]
            other.work_for(offered.lanes)
            await stage.later(timedelta(seconds=0.1))
            assert await lanes_held(stage) == [ENDPOINTS // 2] * 2

    play_postgres(scenario)


def test_what_nobody_comes_for_is_sent_by_who_has_offered_it(play_postgres: Play) -> None:
    """The next heartbeat is two seconds away, and the other worker does not hear of anything."""

    async def scenario(stage: Stage) -> None:
        one, other = worker(stage), worker(stage)
        offered = Offered(one)
        async with much_due_at_once(stage, one, other):
            assert await lanes_held(stage) == [ENDPOINTS // 2]
            await stage.later(SECOND)
            assert await lanes_held(stage) == [ENDPOINTS]
            await stage.later(MINUTE)
        assert offered.lanes
        assert len(stage.sent) == ENDPOINTS * EACH

    play_postgres(scenario)


def test_a_worker_that_is_alone_keeps_everything_and_its_pace(
    play_postgres: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int | None] = []
    fair_share = QueueRecords.fair_share

    async def noted(self: QueueRecords, now: datetime) -> int | None:
        asked.append(await fair_share(self, now))
        return asked[-1]

    monkeypatch.setattr(QueueRecords, "fair_share", noted)

    async def scenario(stage: Stage) -> None:
        one = worker(stage)
        offered = Offered(one)
        async with much_due_at_once(stage, one):
            assert await lanes_held(stage) == [ENDPOINTS]
            assert asked == [None] * HEARTBEATS_PER_LEASE
            await stage.later(MINUTE)
        assert len(stage.sent) == ENDPOINTS * EACH
        assert not offered.lanes

    play_postgres(scenario)


class Offered:
    """What a worker offers to others."""

    def __init__(self, worker: Dispatcher) -> None:
        self.lanes: set[Lane] = set()
        worker.offer_to(self._note)

    def _note(self, offered: Collection[Lane]) -> None:
        self.lanes |= set(offered)


def worker(stage: Stage) -> Dispatcher:
    """One that never looks for work unless it is told."""
    return stage.dispatcher(cap=1, lease=LEASE, longest_sleep=HOUR)


@asynccontextmanager
async def much_due_at_once(stage: Stage, *workers: Dispatcher) -> AsyncIterator[None]:
    """They know of one another by then, the first one is told of it, and a second has passed."""
    async with AsyncExitStack() as running:
        for each in workers:
            await running.enter_async_context(stage.delivering(each, straight=False))
        await stage.later(LEASE)
        await furnish(stage, ENDPOINTS, EACH, seconds=0.1)
        workers[0].work_for(())
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


async def lanes_held(stage: Stage) -> list[int]:
    """By each worker."""
    count = sa.func.count().label("total")
    found = await stage.rows(sa.select(count).select_from(lanes).group_by(lanes.c.worker_id))
    return [row.total for row in found]
