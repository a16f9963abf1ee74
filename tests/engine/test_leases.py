"""Workers come and go: what one leaves behind another one sends, and late results are refused."""

import asyncio
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.tables import events, queue
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Assignment, DeliveryQueue, Result
from cuepost.ports.store import StoreUnavailable
from cuepost.ports.transport import Exchange, Request, Transport
from cuepost.testing import HANGS, Answer
from tests.simulation.frost import Frost, FrostyClock, FrostyStore, FrostyTransport
from tests.support.records import Records
from tests.support.stage import HOUR, MINUTE, Play, Stage

URL = "https://hooks.example.com/cue"
LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)


class Told:
    """Telemetry that keeps what it is told."""

    def __init__(self) -> None:
        self.recorded_groups: list[tuple[int, int]] = []

    def attempted(self, result: Result) -> None: ...

    def recorded(self, results: int, superseded: int, at: object) -> None:
        self.recorded_groups.append((results, superseded))

    def stalled(self, reason: str) -> None: ...


def test_a_result_that_comes_after_another_worker_took_over_is_kept_as_superseded(
    play_postgres: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        stage.telemetry = told = Told()
        await stage.world.endpoint()
        stage.transport.will(URL, Answer(seconds=13))
        frost, quick = Frost(), stage.dispatcher(lease=LEASE)
        stopped = stage.dispatcher(
            FrostyStore(stage.store, frost),
            lease=LEASE,
            clock=FrostyClock(stage.clock, frost),
            transport=FrostyTransport(stage.transport, frost, asyncio.TaskGroup()),
        )
        async with stage.delivering(stopped):
            await stage.world.complete()
            await stage.later(SECOND)
            frost.freeze()
            async with stage.delivering(quick, straight=False):
                await stage.later(MINUTE)
                frost.thaw()
                await stage.later(MINUTE)
        [delivery] = await stage.world.deliveries()
        assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 1)
        assert len(stage.sent) == 2
        assert (1, 1) in told.recorded_groups
        assert await on_record(stage, delivery) == [
            (stage.sent[0].at, "superseded", 0, 1),
            (stage.sent[1].at, "delivered", 1, 1),
        ]

    play_postgres(scenario)


async def on_record(stage: Stage, delivery: Delivery) -> list[tuple[datetime, str, int, int]]:
    """When each attempt began, its outcome, budget and number; in the order of time."""
    made = await stage.attempts(delivery.id)
    return sorted((each.started_at, each.outcome, each.budget, each.number) for each in made)


def test_a_result_that_comes_late_counts_if_nobody_took_over(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        stage.transport.will(URL, Answer(seconds=13))
        async with stage.delivering(stage.dispatcher(lease=LEASE)):
            await world.complete()
            await stage.later(SECOND)
            # Another process has noticed that this one was gone, and ended itself then.
            later = stage.clock.now() + HOUR
            await world.do(lambda transaction: transaction.queue.dismiss_dead(later))
            [delivery] = await world.deliveries()
            assert [each[1] for each in await on_record(stage, delivery)] == ["interrupted"]
            # Disabled for a moment, so that this one does not send it again meanwhile.
            await stage.sql(sa.update(queue).values(due_at=later))
            await stage.later(MINUTE)
        [delivery] = await world.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        assert await on_record(stage, delivery) == [(stage.sent[0].at, "delivered", 1, 1)]
        assert len(stage.sent) == 1

    play_postgres(scenario)


def test_a_stall_past_every_limit_leads_to_no_second_copy(play: Play) -> None:
    """As after SIGSTOP: time passes at once, in the middle of an attempt."""

    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, HANGS, HANGS, HANGS)
        async with stage.delivering(stage.dispatcher(lease=LEASE)):
            await stage.world.complete()
            await stage.later(SECOND)
            stage.clock.advance(13)
            await stage.later(HOUR)
        [delivery] = await stage.world.deliveries()
        assert delivery.status is DeliveryStatus.FAILED
        assert [each[1:] for each in await on_record(stage, delivery)] == [
            ("timeout", 1, 1),
            ("timeout", 1, 2),
            ("timeout", 1, 3),
        ]
        assert len(stage.sent) == 3

    play(scenario)


def test_what_a_dead_worker_held_is_sent_by_another_one_once_its_lease_has_ended(
    play_postgres: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, HANGS)
        async with stage.crashing(stage.dispatcher(lease=LEASE)):
            await stage.world.complete()
            await stage.later()
        async with stage.delivering(stage.dispatcher(lease=LEASE)):
            await stage.later(MINUTE)
        [first, second] = stage.sent
        assert LEASE <= second.at - first.at <= LEASE * 1.5
        [delivery] = await stage.world.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        outcomes = {each[1:] for each in await on_record(stage, delivery)}
        assert outcomes == {("interrupted", 0, 1), ("delivered", 1, 1)}

    play_postgres(scenario)


def test_the_only_worker_takes_over_at_once(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        stage.transport.will(URL, 500, HANGS)
        async with stage.crashing():
            await world.complete()
            await stage.later(MINUTE)
            assert len(stage.sent) == 2
        await stage.take_over()
        async with stage.delivering():
            await stage.later()
        assert len(stage.sent) == 3
        [delivery] = await world.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        assert {each[1:] for each in await on_record(stage, delivery)} == {
            ("http_error", 1, 1),
            ("interrupted", 0, 1),
            ("delivered", 1, 2),
        }

    play_embedded(scenario)


def test_two_workers_together_keep_to_the_cap_of_an_endpoint(play_postgres: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        urls = [f"https://hooks{number}.example.com/cue" for number in range(4)]
        for url in urls:
            await world.endpoint(url=url)
            stage.transport.will(url, *[Answer(seconds=1)] * 60)
        projects = [await world.project() for _ in range(30)]
        one, other = stage.dispatcher(cap=2), stage.dispatcher(cap=2)
        async with stage.delivering(one), stage.delivering(other):
            for each in projects:
                await world.report(world.milestone(each))
                one.work_for(())
                other.work_for(())
            await stage.later(HOUR)
        assert stage.transport.most_in_flight == dict.fromkeys(urls, 2)
        assert len(stage.sent) == 120
        statuses = {each.status for each in await world.deliveries()}
        assert statuses == {DeliveryStatus.DELIVERED}

    play_postgres(scenario)


def test_a_commit_whose_answer_is_lost_is_found_again(play_embedded: Play) -> None:
    """As it may be lost between a worker and its database; here the store stands for that."""

    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        stage.transport.will(URL, Answer(seconds=5))
        project, watch = await world.project(), stage.store.watch
        async with stage.delivering(stage.dispatcher(lease=LEASE, alone=False)):
            await world.complete()
            await stage.later()
            lost = watch.commits + 1
            watch.loses = lambda number: number == lost
            with pytest.raises(StoreUnavailable):
                await world.report(world.milestone(project))
            assert {row.status for row in (await world.dump())["queue"]} == {"delivering"}
            await stage.later(MINUTE)
        statuses = [each.status for each in await world.deliveries()]
        assert (statuses, len(stage.sent)) == ([DeliveryStatus.DELIVERED] * 2, 2)

    play_embedded(scenario)


def test_a_caller_that_goes_away_while_it_commits_loses_nothing(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        project = await world.project()
        milestone = world.milestone(project)
        async with stage.delivering(stage.dispatcher(lease=LEASE)):
            await stage.later()
            for checkpoints in range(1, 60):
                async with asyncio.TaskGroup() as tasks:
                    calling = tasks.create_task(world.report(milestone))
                    for _ in range(checkpoints):
                        await asyncio.wait([calling], timeout=0)
                    calling.cancel()
            await world.report(milestone)
            await stage.later(MINUTE)
        [delivery] = await world.deliveries()
        assert (delivery.status, len(stage.sent)) == (DeliveryStatus.DELIVERED, 1)

    play(scenario)


def test_a_delivery_whose_event_is_gone_ends_and_holds_up_nobody(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        orphan = await world.complete()
        await stage.sql(sa.delete(events))
        sound = await world.complete()
        async with stage.delivering():
            await stage.later(MINUTE)
            ended = {each.id: each.status for each in await world.deliveries()}
        assert ended == {orphan.id: DeliveryStatus.FAILED, sound.id: DeliveryStatus.DELIVERED}
        assert await world.queued() == set()

    play(scenario)


def test_a_bug_in_an_attempt_costs_a_minute_and_no_slot(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        world = stage.world
        await world.endpoint()
        poisoned = Poisoned(stage.transport)
        dispatcher = stage.dispatcher(attempts=1, cap=1, transport=poisoned)
        async with stage.delivering(dispatcher):
            began = stage.clock.now()
            made = [await world.complete() for _ in range(3)]
            await stage.later(HOUR)
        assert [each.at - began for each in stage.sent] == [MINUTE] * 3
        ended = await world.deliveries()
        assert {(each.status, each.attempt_count) for each in ended} == {("delivered", 1)}
        assert len(made) == len([r for r in caplog.records if "attempt_crashed" in r.message])

    play(scenario)


class Poisoned:
    """A transport with a bug that shows at the first attempt of each event."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner
        self._seen: set[bytes] = set()

    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        return False

    async def send(self, request: Request) -> Exchange:
        if request.body not in self._seen:
            self._seen.add(request.body)
            raise ZeroDivisionError
        return await self._inner.send(request)


def test_rows_that_nobody_holds_are_not_left_in_the_queue_of_leases(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        await stage.world.endpoint()
        stage.transport.will(URL, HANGS, HANGS)
        async with stage.delivering(stage.dispatcher(cap=1)):
            for _ in range(4):
                await stage.world.complete()
            await stage.later()
        rows = (await stage.world.dump())[queue.name]
        assert {(row.status, row.worker) for row in rows} == {
            ("pending", None),
            ("retrying", None),
        }
        assert (await stage.world.dump())["lanes"] == []
        assert (await stage.world.dump())["workers"] == []

    play(scenario)


def begun_lease(stage: Stage) -> WorkerLease:
    lease = WorkerLease(stage.clock, stage.world.ids, LEASE)
    lease.begun(stage.clock.monotonic())
    return lease


def assignment(stage: Stage) -> Assignment:
    records = Records(stage.clock, stage.world.ids)
    return records.assignment(records.delivery(records.id()))


@dataclass(frozen=True, slots=True)
class BusyQueue:
    """While it takes one assignment back, the worker finds that it does not want another."""

    lease: WorkerLease
    another: Assignment

    async def put_back(self, *_: object, may_be_sent: bool) -> None:
        self.lease.give_back([self.another])


def test_what_becomes_unwanted_while_others_are_returned_is_returned_next(play: Play) -> None:
    async def scenario(stage: Stage) -> None:
        now = stage.clock.now()
        first, second = assignment(stage), assignment(stage)
        lease = WorkerLease(stage.clock, stage.world.ids, LEASE)
        lease.took([first, second])
        lease.give_back([first])
        queue = cast(DeliveryQueue, BusyQueue(lease, second))
        lease.returned(await lease.return_unwanted(queue, now))
        assert lease.has_unwanted
        lease.returned(await lease.return_unwanted(queue, now))
        assert not lease.has_unwanted

    play(scenario)


@dataclass(frozen=True, slots=True)
class FurtherQueue:
    """It has leased one delivery to a worker that has not heard of that yet."""

    delivery: UUID

    async def put_back(self, *_: object, may_be_sent: bool) -> None: ...

    async def stay(self, worker: UUID, until: datetime) -> bool:
        return True

    async def leased(self, worker: UUID) -> Collection[UUID]:
        return [self.delivery]


def test_an_answer_that_is_late_has_a_heartbeat_to_arrive(play_embedded: Play) -> None:
    async def scenario(stage: Stage) -> None:
        lease = begun_lease(stage)
        queue = cast(DeliveryQueue, FurtherQueue(stage.world.ids(stage.clock.now())))
        assert await lease.renew(queue, stage.clock.now())
        stage.clock.advance(lease.heartbeat_seconds / 10)
        assert await lease.renew(queue, stage.clock.now())
        assert not lease.has_unwanted
        stage.clock.advance(lease.heartbeat_seconds)
        assert await lease.renew(queue, stage.clock.now())
        assert lease.has_unwanted

    play_embedded(scenario)


async def look(lease: WorkerLease, queue: DeliveryQueue, stage: Stage) -> None:
    """One heartbeat later the worker compares what is leased to it with what it knows."""
    stage.clock.advance(lease.heartbeat_seconds)
    assert await lease.renew(queue, stage.clock.now())


def test_two_leases_of_one_delivery_are_not_taken_for_one_that_is_orphaned(
    play_embedded: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        lease, held = begun_lease(stage), assignment(stage)
        queue = cast(DeliveryQueue, FurtherQueue(held.delivery_id))
        await look(lease, queue, stage)
        # The answer of that booking arrives; the delivery waits for too long and is returned.
        assert lease.took(lease.not_disowned([held])) == [held]
        lease.give_back([held])
        lease.returned(await lease.return_unwanted(queue, stage.clock.now()))
        # It has been claimed once more, and the answer of that is on its way.
        await look(lease, queue, stage)
        assert not lease.has_unwanted
        assert lease.took([held]) == [held]
        await look(lease, queue, stage)
        assert not lease.has_unwanted

    play_embedded(scenario)


def test_what_is_returned_as_orphaned_is_not_sent_when_its_answer_comes_at_last(
    play_embedded: Play,
) -> None:
    async def scenario(stage: Stage) -> None:
        lease, held = begun_lease(stage), assignment(stage)
        queue = cast(DeliveryQueue, FurtherQueue(held.delivery_id))
        await look(lease, queue, stage)
        await look(lease, queue, stage)
        assert lease.has_unwanted
        assert lease.took(lease.not_disowned([held])) == []
        lease.returned(await lease.return_unwanted(queue, stage.clock.now()))
        assert lease.took(lease.not_disowned([held])) == []
        # Whoever claims it from the queue sends it.
        assert lease.took([held]) == [held]

    play_embedded(scenario)


def test_a_delivery_is_held_once_however_often_it_is_assigned(
    play_embedded: Play, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(stage: Stage) -> None:
        lease, held = begun_lease(stage), assignment(stage)
        assert lease.took([held]) == [held]
        assert lease.took([replace(held)]) == []
        following = replace(held, number=2)
        assert lease.took([following]) == [following]
        assert [r.getMessage() for r in caplog.records] == [
            f"event=assignment_held_twice delivery={held.delivery_id}"
        ]

    play_embedded(scenario)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_lease_lasts_as_long_whatever_is_done_to_the_wall_clock(
    play_embedded: Play, step: timedelta
) -> None:
    async def scenario(stage: Stage) -> None:
        lease = begun_lease(stage)
        stage.clock.step(step)
        stage.clock.advance(LEASE.total_seconds() - 0.001)
        assert lease.is_held
        stage.clock.advance(0.001)
        assert not lease.is_held

    play_embedded(scenario)
