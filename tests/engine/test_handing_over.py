"""What another process books for a worker's lane is leased to that worker when it is committed."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.tables import lanes
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.dispatch import DeliveryKey
from cuepost.testing import Answer
from tests.support.other_process import OtherProcess
from tests.support.stage import HOUR, Play, Stage

URL = "https://hooks.example.com/cue"
LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)


async def hold_the_lane(stage: Stage, worker: Dispatcher) -> None:
    """It has sent one delivery, and now holds the lane of the only endpoint."""
    await stage.world.endpoint()
    await stage.world.complete()
    worker.work_for(await stage.lanes())
    await stage.later(SECOND)
    assert len(stage.sent) == 1


def worker_of(stage: Stage, attempts: int = 64, cap: int = 8) -> Dispatcher:
    return stage.dispatcher(attempts=attempts, cap=cap, lease=LEASE, longest_sleep=HOUR)


def test_a_worker_sends_without_a_claim_what_is_handed_over(
    play_postgres: Play, claims: list[int]
) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering(worker_of(stage), straight=False) as worker:
            await hold_the_lane(stage, worker)
            claims.clear()
            other = OtherProcess(worker.hand_over)
            stage.store.handover = other
            for _ in range(20):
                await stage.world.complete()
            await stage.later()
            assert (len(stage.sent), len(other.handed_over), sum(claims)) == (21, 20, 0)
            statuses = {each.status for each in await stage.world.deliveries()}
            assert statuses == {DeliveryStatus.DELIVERED}

    play_postgres(scenario)


def test_a_lane_that_no_worker_holds_is_announced(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering(worker_of(stage), straight=False) as worker:
            other = OtherProcess(worker.hand_over)
            stage.store.handover = other
            await stage.world.endpoint()
            await stage.world.complete()
            assert (other.handed_over, other.waiting) == ([], set(await stage.lanes()))

    play_postgres(scenario)


def test_when_the_word_is_lost_the_heartbeat_finds_the_lease(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering(worker_of(stage), straight=False) as worker:
            await hold_the_lane(stage, worker)
            other = OtherProcess(lambda *_: None)
            stage.store.handover = other
            await stage.world.complete()
            await stage.later(2 * LEASE)
            assert (len(stage.sent), len(other.handed_over)) == (2, 1)
            [newest, _] = await stage.world.deliveries()
            # It was never sent under that lease, but only the store knows that it was leased.
            assert (newest.status, newest.attempt_count) == (DeliveryStatus.DELIVERED, 1)

    play_postgres(scenario)


def test_more_than_there_is_room_for_goes_back_and_closes_the_lane(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        async with stage.delivering(worker_of(stage, attempts=1, cap=1), straight=False) as worker:
            await hold_the_lane(stage, worker)
            other = OtherProcess(worker.hand_over)
            stage.store.handover = other
            stage.transport.will(URL, *[Answer(seconds=0.2)] * 40)
            projects = [await world.project() for _ in range(40)]
            await world.report(*map(world.milestone, projects))
            await stage.later(timedelta(seconds=0.1))
            assert len(other.handed_over) == 40
            assert await stage.rows(sa.select(lanes.c.accepts)) == [(False,)]
            await world.complete()
            assert len(other.handed_over) == 40
            assert other.waiting == set(await stage.lanes())
            await stage.later(HOUR)
            assert len(stage.sent) == 42
            assert await stage.rows(sa.select(lanes.c.accepts)) in ([], [(True,)])

    play_postgres(scenario)


def test_what_is_stopped_before_the_worker_has_read_it_is_not_sent(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world, late = stage.world, list[tuple[UUID, Sequence[DeliveryKey]]]()
        async with stage.delivering(worker_of(stage), straight=False) as worker:
            await hold_the_lane(stage, worker)
            stage.store.handover = OtherProcess(lambda *said: late.append(said))
            project = await world.project()
            await world.report(world.milestone(project))
            await world.do(lambda t: world.service.projects.delete(t, world.owner, project.id))
            worker.hand_over(*late[0])
            await stage.later(SECOND)
            [newest, _] = await world.deliveries()
            assert (newest.status, newest.reason) == (
                DeliveryStatus.CANCELLED,
                CancelReason.PROJECT_DELETED,
            )
            assert len(stage.sent) == 1

    play_postgres(scenario)


def test_a_worker_that_dies_leaves_what_was_handed_over_to_others(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        async with stage.crashing(worker_of(stage)) as worker:
            stage.store.handover = NoHandover()
            await hold_the_lane(stage, worker)
            stage.store.handover = OtherProcess(lambda *_: None)
            await world.complete()
        async with stage.delivering(worker_of(stage), straight=False):
            await stage.later(2 * LEASE)
            assert len(stage.sent) == 2
            [newest, _] = await world.deliveries()
            outcomes = [each.outcome for each in await stage.attempts(newest.id)]
            assert outcomes == [Outcome.INTERRUPTED, Outcome.DELIVERED]

    play_postgres(scenario)


def test_word_for_a_name_that_was_given_up_is_ignored(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        async with stage.delivering(worker_of(stage), straight=False) as worker:
            await hold_the_lane(stage, worker)
            worker.hand_over(UUID(int=1), [(1, UUID(int=2))])
            await stage.later(SECOND)
            assert len(stage.sent) == 1

    play_postgres(scenario)
