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
from tests.simulation.freezing import FreezableClock, FreezableStore, FreezableTransport, Freeze
from tests.support.engine_harness import HOUR, MINUTE, EngineHarness, RunScenarios
from tests.support.records import Records

URL = "https://hooks.example.com/cue"
LEASE = timedelta(seconds=10)
SECOND = timedelta(seconds=1)


class Told:
    """Telemetry that keeps what it is told."""

    def __init__(self) -> None:
        self.late_results: list[int] = []

    def attempted(self, result: Result) -> None: ...

    def late(self, results: int) -> None:
        self.late_results.append(results)

    def stalled(self, reason: str) -> None: ...


def test_a_result_that_comes_after_another_worker_took_over_is_kept_as_superseded(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        engine.telemetry = reported = Told()
        await engine.harness.endpoint()
        engine.transport.will(URL, Answer(seconds=13))
        freeze, quick = Freeze(), engine.dispatcher(lease=LEASE)
        stopped = engine.dispatcher(
            FreezableStore(engine.store, freeze),
            lease=LEASE,
            clock=FreezableClock(engine.clock, freeze),
            transport=FreezableTransport(engine.transport, freeze, asyncio.TaskGroup()),
        )
        async with engine.delivering(stopped):
            await engine.harness.complete()
            await engine.later(SECOND)
            freeze.freeze()
            async with engine.delivering(quick, direct=False):
                await engine.later(MINUTE)
                freeze.thaw()
                await engine.later(MINUTE)
        [delivery] = await engine.harness.deliveries()
        assert (delivery.status, delivery.attempt_count) == (DeliveryStatus.DELIVERED, 1)
        assert len(engine.sent) == 2
        assert reported.late_results == [1]
        assert await on_record(engine, delivery) == [
            (engine.sent[0].at, "superseded", 0, 1),
            (engine.sent[1].at, "delivered", 1, 1),
        ]

    run_postgres(scenario)


async def on_record(
    engine: EngineHarness, delivery: Delivery
) -> list[tuple[datetime, str, int, int]]:
    """When each attempt began, its outcome, budget and number; in the order of time."""
    made = await engine.attempts(delivery.id)
    return sorted((each.started_at, each.outcome, each.budget, each.number) for each in made)


def test_a_result_that_comes_late_counts_if_no_worker_took_over(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        engine.transport.will(URL, Answer(seconds=13))
        async with engine.delivering(engine.dispatcher(lease=LEASE)):
            await harness.complete()
            await engine.later(SECOND)
            # Another process has noticed that this one was gone, and ended itself then.
            later = engine.clock.now() + HOUR
            await harness.do(lambda transaction: transaction.queue.remove_dead_workers(later))
            [delivery] = await harness.deliveries()
            assert [each[1] for each in await on_record(engine, delivery)] == ["interrupted"]
            # Disabled for a moment, so that this one does not send it again.
            await engine.sql(sa.update(queue).values(due_at=later))
            await engine.later(MINUTE)
        [delivery] = await harness.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        assert await on_record(engine, delivery) == [(engine.sent[0].at, "delivered", 1, 1)]
        assert len(engine.sent) == 1

    run_postgres(scenario)


def test_a_stall_past_every_limit_leads_to_no_second_copy(run_scenarios: RunScenarios) -> None:
    """As after SIGSTOP: time passes at once, in the middle of an attempt."""

    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, HANGS, HANGS, HANGS)
        async with engine.delivering(engine.dispatcher(lease=LEASE)):
            await engine.harness.complete()
            await engine.later(SECOND)
            engine.clock.advance(13)
            await engine.later(HOUR)
        [delivery] = await engine.harness.deliveries()
        assert delivery.status is DeliveryStatus.FAILED
        assert [each[1:] for each in await on_record(engine, delivery)] == [
            ("timeout", 1, 1),
            ("timeout", 1, 2),
            ("timeout", 1, 3),
        ]
        assert len(engine.sent) == 3

    run_scenarios(scenario)


def test_what_a_dead_worker_held_is_sent_by_another_one_once_its_lease_has_ended(
    run_postgres: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, HANGS)
        async with engine.crashing(engine.dispatcher(lease=LEASE)):
            await engine.harness.complete()
            await engine.later()
        async with engine.delivering(engine.dispatcher(lease=LEASE)):
            await engine.later(MINUTE)
        [first, second] = engine.sent
        assert LEASE <= second.at - first.at <= LEASE * 1.5
        [delivery] = await engine.harness.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        outcomes = {each[1:] for each in await on_record(engine, delivery)}
        assert outcomes == {("interrupted", 0, 1), ("delivered", 1, 1)}

    run_postgres(scenario)


def test_the_only_worker_takes_over_at_once(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        engine.transport.will(URL, 500, HANGS)
        async with engine.crashing():
            await harness.complete()
            await engine.later(MINUTE)
            assert len(engine.sent) == 2
        await engine.take_over()
        async with engine.delivering():
            await engine.later()
        assert len(engine.sent) == 3
        [delivery] = await harness.deliveries()
        assert delivery.status is DeliveryStatus.DELIVERED
        assert {each[1:] for each in await on_record(engine, delivery)} == {
            ("http_error", 1, 1),
            ("interrupted", 0, 1),
            ("delivered", 1, 2),
        }

    run_embedded(scenario)


def test_two_workers_together_keep_to_the_cap_of_an_endpoint(run_postgres: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        urls = [f"https://hooks{number}.example.com/cue" for number in range(4)]
        for url in urls:
            await harness.endpoint(url=url)
            engine.transport.will(url, *[Answer(seconds=1)] * 60)
        projects = [await harness.project() for _ in range(30)]
        one, other = engine.dispatcher(cap=2), engine.dispatcher(cap=2)
        async with engine.delivering(one), engine.delivering(other):
            for each in projects:
                await harness.report(harness.milestone(each))
                one.work_for(())
                other.work_for(())
            await engine.later(HOUR)
        assert engine.transport.most_in_flight == dict.fromkeys(urls, 2)
        assert len(engine.sent) == 120
        statuses = {each.status for each in await harness.deliveries()}
        assert statuses == {DeliveryStatus.DELIVERED}

    run_postgres(scenario)


def test_a_commit_whose_answer_is_lost_is_found_again(run_embedded: RunScenarios) -> None:
    """As it may be lost between a worker and its database; here the store stands for that."""

    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        engine.transport.will(URL, Answer(seconds=5))
        project, watch = await harness.project(), engine.store.watch
        async with engine.delivering(engine.dispatcher(lease=LEASE, shared=True)):
            await harness.complete()
            await engine.later()
            lost = watch.commits + 1
            watch.loses = lambda number: number == lost
            with pytest.raises(StoreUnavailable):
                await harness.report(harness.milestone(project))
            assert {row.status for row in (await harness.dump())["queue"]} == {"delivering"}
            await engine.later(MINUTE)
        statuses = [each.status for each in await harness.deliveries()]
        assert (statuses, len(engine.sent)) == ([DeliveryStatus.DELIVERED] * 2, 2)

    run_embedded(scenario)


def test_a_caller_that_goes_away_while_it_commits_loses_nothing(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        project = await harness.project()
        milestone = harness.milestone(project)
        async with engine.delivering(engine.dispatcher(lease=LEASE)):
            await engine.later()
            for checkpoints in range(1, 60):
                async with asyncio.TaskGroup() as tasks:
                    calling = tasks.create_task(harness.report(milestone))
                    for _ in range(checkpoints):
                        await asyncio.wait([calling], timeout=0)
                    calling.cancel()
            await harness.report(milestone)
            await engine.later(MINUTE)
        [delivery] = await harness.deliveries()
        assert (delivery.status, len(engine.sent)) == (DeliveryStatus.DELIVERED, 1)

    run_scenarios(scenario)


def test_a_delivery_whose_event_is_gone_ends_and_holds_up_no_other(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        orphan = await harness.complete()
        await engine.sql(sa.delete(events))
        sound = await harness.complete()
        async with engine.delivering():
            await engine.later(MINUTE)
            ended = {each.id: each.status for each in await harness.deliveries()}
        assert ended == {orphan.id: DeliveryStatus.FAILED, sound.id: DeliveryStatus.DELIVERED}
        assert await harness.queued() == set()

    run_scenarios(scenario)


def test_a_bug_in_an_attempt_costs_a_minute_and_no_slot(
    run_scenarios: RunScenarios, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        harness = engine.harness
        await harness.endpoint()
        poisoned = Poisoned(engine.transport)
        dispatcher = engine.dispatcher(attempts=1, cap=1, transport=poisoned)
        async with engine.delivering(dispatcher):
            began = engine.clock.now()
            made = [await harness.complete() for _ in range(3)]
            await engine.later(HOUR)
        assert [each.at - began for each in engine.sent] == [MINUTE] * 3
        ended = await harness.deliveries()
        assert {(each.status, each.attempt_count) for each in ended} == {("delivered", 1)}
        assert len(made) == len([r for r in caplog.records if "attempt_crashed" in r.message])

    run_scenarios(scenario)


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


def test_rows_without_a_holder_are_not_left_in_the_queue_of_leases(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        await engine.harness.endpoint()
        engine.transport.will(URL, HANGS, HANGS)
        async with engine.delivering(engine.dispatcher(cap=1)):
            for _ in range(4):
                await engine.harness.complete()
            await engine.later()
        rows = (await engine.harness.dump())[queue.name]
        assert {(row.status, row.worker) for row in rows} == {
            ("pending", None),
            ("retrying", None),
        }
        assert (await engine.harness.dump())["lanes"] == []
        assert (await engine.harness.dump())["workers"] == []

    run_scenarios(scenario)


def begun_lease(engine: EngineHarness) -> WorkerLease:
    lease = WorkerLease(engine.clock, engine.harness.ids, LEASE)
    lease.renewed(lease.worker, engine.clock.monotonic(), is_mine=True)
    return lease


def assignment(engine: EngineHarness) -> Assignment:
    records = Records(engine.clock, engine.harness.ids)
    return records.assignment(records.delivery(records.id()))


@dataclass(frozen=True, slots=True)
class BusyQueue:
    """While it takes one assignment back, the worker finds that it does not want another."""

    lease: WorkerLease
    another: Assignment

    async def put_back(self, *_: object, may_be_sent: bool) -> None:
        self.lease.give_back([self.another])


def test_what_is_to_be_released_while_others_are_returned_is_returned_next(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        now = engine.clock.now()
        first, second = assignment(engine), assignment(engine)
        lease = WorkerLease(engine.clock, engine.harness.ids, LEASE)
        lease.took([first, second])
        lease.give_back([first])
        queue = cast(DeliveryQueue, BusyQueue(lease, second))
        lease.returned(await lease.release_returned(queue, now))
        assert lease.has_releases
        lease.returned(await lease.release_returned(queue, now))
        assert not lease.has_releases

    run_scenarios(scenario)


@dataclass(frozen=True, slots=True)
class FurtherQueue:
    """It has leased one delivery to a worker that has not heard of that yet."""

    delivery: UUID

    async def put_back(self, *_: object, may_be_sent: bool) -> None: ...

    async def renew_lease(self, worker: UUID, until: datetime) -> bool:
        return True

    async def leased(self, worker: UUID) -> Collection[UUID]:
        return [self.delivery]


def test_an_answer_that_is_late_has_a_heartbeat_to_arrive(run_embedded: RunScenarios) -> None:
    async def scenario(engine: EngineHarness) -> None:
        lease = begun_lease(engine)
        queue = cast(DeliveryQueue, FurtherQueue(engine.harness.ids(engine.clock.now())))
        assert await lease.renew(queue, engine.clock.now())
        engine.clock.advance(lease.heartbeat_seconds / 10)
        assert await lease.renew(queue, engine.clock.now())
        assert not lease.has_releases
        engine.clock.advance(lease.heartbeat_seconds)
        assert await lease.renew(queue, engine.clock.now())
        assert lease.has_releases

    run_embedded(scenario)


async def look(lease: WorkerLease, queue: DeliveryQueue, engine: EngineHarness) -> None:
    """One heartbeat later the worker compares what is leased to it with what it knows."""
    engine.clock.advance(lease.heartbeat_seconds)
    assert await lease.renew(queue, engine.clock.now())


def taken_late(lease: WorkerLease, held: Assignment) -> list[Assignment]:
    """The answer of the commit that leased it arrives."""
    return lease.took([] if held.delivery_id in lease.released_orphans else [held])


def test_two_leases_of_one_delivery_are_not_taken_for_one_that_is_orphaned(
    run_embedded: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        lease, held = begun_lease(engine), assignment(engine)
        queue = cast(DeliveryQueue, FurtherQueue(held.delivery_id))
        await look(lease, queue, engine)
        # The answer of that booking arrives; the delivery waits for too long and is returned.
        assert taken_late(lease, held) == [held]
        lease.give_back([held])
        lease.returned(await lease.release_returned(queue, engine.clock.now()))
        # It has been claimed once more, and the answer of that is on its way.
        await look(lease, queue, engine)
        assert not lease.has_releases
        assert lease.took([held]) == [held]
        await look(lease, queue, engine)
        assert not lease.has_releases

    run_embedded(scenario)


def test_what_is_returned_as_orphaned_is_not_sent_when_its_answer_comes_at_last(
    run_embedded: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        lease, held = begun_lease(engine), assignment(engine)
        queue = cast(DeliveryQueue, FurtherQueue(held.delivery_id))
        await look(lease, queue, engine)
        await look(lease, queue, engine)
        assert lease.has_releases
        assert taken_late(lease, held) == []
        lease.returned(await lease.release_returned(queue, engine.clock.now()))
        assert taken_late(lease, held) == []
        # The worker that claims it from the queue sends it.
        assert lease.took([held]) == [held]

    run_embedded(scenario)


def test_a_delivery_is_held_once_however_often_it_is_assigned(
    run_embedded: RunScenarios, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        lease, held = begun_lease(engine), assignment(engine)
        assert lease.took([held]) == [held]
        assert lease.took([replace(held)]) == []
        following = replace(held, number=2)
        assert lease.took([following]) == [following]
        assert [r.getMessage() for r in caplog.records] == [
            f"event=assignment_held_twice delivery={held.delivery_id}"
        ]

    run_embedded(scenario)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_lease_lasts_as_long_whatever_is_done_to_the_wall_clock(
    run_embedded: RunScenarios, step: timedelta
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        lease = begun_lease(engine)
        engine.clock.step(step)
        engine.clock.advance(LEASE.total_seconds() - 0.001)
        assert lease.is_held
        engine.clock.advance(0.001)
        assert not lease.is_held

    run_embedded(scenario)
