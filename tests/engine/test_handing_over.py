"""What another process books for a worker's lane is leased to that worker when it is committed."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.tables import lanes, queue
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.engine import shared_dispatcher
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.lane_board import LaneBoard
from cuepost.ports.dispatch import DeliveryKey
from cuepost.testing import Answer
from tests.support.engine_harness import HOUR, EngineHarness, RunScenarios
from tests.support.other_process import OtherProcess

URL = "https://hooks.example.com/cue"
LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)


async def hold_the_lane(engine: EngineHarness, worker: Dispatcher) -> None:
    """It has sent one delivery, and now holds the lane of the only endpoint."""
    await engine.harness.endpoint()
    await engine.harness.complete()
    worker.work_for(await engine.lanes())
    await engine.later(SECOND)
    assert len(engine.sent) == 1


def worker_of(engine: EngineHarness, attempts: int = 64, cap: int = 8) -> Dispatcher:
    return engine.dispatcher(attempts=attempts, cap=cap, lease=LEASE, longest_sleep=HOUR)


def test_a_worker_sends_without_a_claim_what_is_handed_over(
    run_postgres: RunScenarios, claims: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            claims.clear()
            other = OtherProcess(worker.hand_over)
            engine.store.handover = other
            for _ in range(20):
                await engine.harness.complete()
            await engine.later()
            assert (len(engine.sent), len(other.handed_over), sum(claims)) == (21, 20, 0)
            statuses = {each.status for each in await engine.harness.deliveries()}
            assert statuses == {DeliveryStatus.DELIVERED}

    run_postgres(scenario)


def test_a_lane_that_no_worker_holds_is_announced(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            other = OtherProcess(worker.hand_over)
            engine.store.handover = other
            await engine.harness.endpoint()
            await engine.harness.complete()
            assert (other.handed_over, other.waiting) == ([], set(await engine.lanes()))

    run_postgres(scenario)


def test_when_the_word_is_lost_the_heartbeat_finds_the_lease(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            other = OtherProcess(lambda *_: None)
            engine.store.handover = other
            await engine.harness.complete()
            await engine.later(2 * LEASE)
            assert (len(engine.sent), len(other.handed_over)) == (2, 1)
            [newest, _] = await engine.harness.deliveries()
            # It was never sent under that lease, but only the store knows that it was leased.
            assert (newest.status, newest.attempt_count) == (DeliveryStatus.DELIVERED, 1)

    run_postgres(scenario)


def test_more_than_there_is_room_for_goes_back_and_closes_the_lane(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        async with engine.delivering(worker_of(engine, attempts=1, cap=1), direct=False) as worker:
            await hold_the_lane(engine, worker)
            other = OtherProcess(worker.hand_over)
            engine.store.handover = other
            engine.transport.will(URL, *[Answer(seconds=0.2)] * 40)
            projects = [await harness.project() for _ in range(40)]
            await harness.report(*map(harness.milestone, projects))
            await engine.later(timedelta(seconds=0.1))
            assert len(other.handed_over) == 40
            assert await engine.rows(sa.select(lanes.c.accepts)) == [(False,)]
            await harness.complete()
            assert len(other.handed_over) == 40
            assert other.waiting == set(await engine.lanes())
            await engine.later(HOUR)
            assert len(engine.sent) == 42
            assert await engine.rows(sa.select(lanes.c.accepts)) in ([], [(True,)])

    run_postgres(scenario)


def fill_memory(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(LaneBoard, "room", 0)
    patch.setattr(LaneBoard, "reserve", lambda *_: False)


async def report(engine: EngineHarness) -> None:
    """One event, for all endpoints."""
    await engine.harness.report(engine.harness.milestone(await engine.harness.project()))


async def hold_lanes(engine: EngineHarness, worker: Dispatcher, count: int) -> list[str]:
    """It has sent one delivery to each endpoint; returns their URLs."""
    urls = [f"{URL}/{number}" for number in range(count)]
    for url in urls:
        await engine.harness.endpoint(url=url)
    await report(engine)
    worker.work_for(await engine.lanes())
    await engine.later(SECOND)
    assert len(engine.sent) == count
    return urls


def test_while_memory_is_full_what_is_handed_over_waits_and_is_not_given_back(
    run_postgres: RunScenarios, claims: list[int]
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine, attempts=2, cap=1), direct=False) as worker:
            urls = await hold_lanes(engine, worker, 50)
            for url in urls:
                engine.transport.will(url, Answer(seconds=0.01))
            claims.clear()
            engine.store.handover = OtherProcess(worker.hand_over)
            await report(engine)
            await engine.later(timedelta(seconds=0.05))
            assert worker.board.load <= worker.board.capacity.held < 50
            leased = await engine.rows(sa.select(queue.c.worker))
            assert {holder for (holder,) in leased} == {worker.lease.worker}
            await engine.later(SECOND)
            assert (len(engine.sent), sum(claims)) == (100, 0)

    run_postgres(scenario)


def test_what_waits_for_memory_is_not_taken_for_orphaned(
    run_postgres: RunScenarios, claims: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            claims.clear()
            engine.store.handover = OtherProcess(worker.hand_over)
            with monkeypatch.context() as patched:
                fill_memory(patched)
                await engine.harness.complete()
                await engine.later(2 * LEASE)
                assert len(engine.sent) == 1
            await engine.later(SECOND)
            assert (len(engine.sent), sum(claims)) == (2, 0)

    run_postgres(scenario)


def test_a_worker_that_leaves_releases_what_it_has_not_read(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            engine.store.handover = OtherProcess(worker.hand_over)
            engine.transport.will(URL, Answer(seconds=9))
            await engine.harness.complete()
            await engine.later()
            fill_memory(monkeypatch)
            await engine.harness.complete()
            await engine.later(SECOND)
            worker.stop()
            await engine.later(SECOND)
            [newest, in_flight, _] = await engine.harness.deliveries()
            assert newest.status == DeliveryStatus.PENDING
            assert in_flight.status == DeliveryStatus.DELIVERING
        [newest, ended, _] = await engine.harness.deliveries()
        assert (newest.status, await engine.attempts(newest.id)) == (DeliveryStatus.PENDING, [])
        assert ended.status == DeliveryStatus.DELIVERED

    run_postgres(scenario)


def test_too_many_that_wait_for_memory_go_back_and_close_their_lanes(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_dispatcher, "HANDED_OVER_WAITING", 3)

    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            engine.store.handover = OtherProcess(worker.hand_over)
            with monkeypatch.context() as patched:
                fill_memory(patched)
                for _ in range(5):
                    await engine.harness.complete()
                await engine.later(SECOND)
                given_back = [each for (each,) in await engine.rows(sa.select(queue.c.worker))]
                assert given_back.count(None) == 2
            await engine.later(HOUR)
            assert len(engine.sent) == 6

    run_postgres(scenario)


def test_what_is_stopped_before_the_worker_has_read_it_is_not_sent(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness, late = engine.harness, list[tuple[UUID, Sequence[DeliveryKey]]]()
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            engine.store.handover = OtherProcess(lambda *said: late.append(said))
            project = await harness.project()
            await harness.report(harness.milestone(project))
            await harness.do(
                lambda t: harness.service.projects.delete(t, harness.owner, project.id)
            )
            worker.hand_over(*late[0])
            await engine.later(SECOND)
            [newest, _] = await harness.deliveries()
            assert (newest.status, newest.reason) == (
                DeliveryStatus.CANCELLED,
                CancelReason.PROJECT_DELETED,
            )
            assert len(engine.sent) == 1

    run_postgres(scenario)


def test_a_worker_that_dies_leaves_what_was_handed_over_to_others(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        async with engine.crashing(worker_of(engine)) as worker:
            engine.store.handover = NoHandover()
            await hold_the_lane(engine, worker)
            engine.store.handover = OtherProcess(lambda *_: None)
            await harness.complete()
        async with engine.delivering(worker_of(engine), direct=False):
            await engine.later(2 * LEASE)
            assert len(engine.sent) == 2
            [newest, _] = await harness.deliveries()
            outcomes = [each.outcome for each in await engine.attempts(newest.id)]
            assert outcomes == [Outcome.INTERRUPTED, Outcome.DELIVERED]

    run_postgres(scenario)


def test_word_for_a_name_that_was_given_up_is_ignored(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            worker.hand_over(UUID(int=1), [(1, UUID(int=2))])
            await engine.later(SECOND)
            assert len(engine.sent) == 1

    run_postgres(scenario)


def test_a_worker_that_leaves_idle_releases_what_it_hears_of_too_late(
    run_postgres: RunScenarios, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        late, leave = list[tuple[UUID, Sequence[DeliveryKey]]](), QueueRecords.leave
        async with engine.delivering(worker_of(engine), direct=False) as worker:
            await hold_the_lane(engine, worker)
            engine.store.handover = OtherProcess(lambda *said: late.append(said))
            await engine.harness.complete()

            async def told_meanwhile(self: QueueRecords, *args: Any) -> None:
                worker.hand_over(*late[0])
                await leave(self, *args)

            monkeypatch.setattr(QueueRecords, "leave", told_meanwhile)
        [newest, _] = await engine.harness.deliveries()
        assert (newest.status, await engine.attempts(newest.id)) == (DeliveryStatus.PENDING, [])

    run_postgres(scenario)
