"""Chores go on by themselves, on both stores, in as many processes as there are."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.engine import housekeeping
from cuepost.engine.housekeeping import Chore, Housekeeper, house_chores
from cuepost.ports.store import StoreUnavailable
from cuepost.testing import VirtualClock
from tests.application.world import EVERYTHING, World
from tests.engine.resting import PATIENCE_SECONDS, House, kept_house

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
RETENTION = 30 * DAY


def chores_of(world: World) -> tuple[Chore, ...]:
    return house_chores(world.store, world.service, world.clock, RETENTION)


@pytest.fixture
async def house(world: World) -> AsyncIterator[House]:
    async with kept_house(world.clock, chores_of(world)) as house:
        yield house


async def failed_deliveries(world: World, count: int) -> list[Delivery]:
    made = [await world.complete() for _ in range(count)]
    for delivery in made:
        await world.end(delivery, DeliveryStatus.FAILED)
    return made


async def started_bulk_retry(world: World, deliveries: list[Delivery]) -> BulkRetry:
    return await world.do(
        world.service.redeliver.start_bulk,
        world.owner,
        deliveries[0].webhook_id,
        since=world.clock.now() - HOUR,
        until=world.clock.now() + HOUR,
        statuses=[],
        dry_run=False,
    )


async def progress(world: World, job: BulkRetry) -> BulkRetry:
    return await world.see(world.service.redeliver.bulk, world.owner, job.webhook_id, job.id)


async def test_a_bulk_retry_is_done_within_a_second_however_many_steps_it_takes(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BULK_RETRY_DELIVERIES", 2)
    await world.endpoint()
    failed = await failed_deliveries(world, 5)
    job = await started_bulk_retry(world, failed)

    await house.later(SECOND)

    assert await progress(world, job) == replace(
        job,
        state=BulkRetryState.FINISHED,
        retried=5,
        position=failed[-1].id,
        finished_at=world.clock.now(),
    )
    assert await world.queued() == {delivery.id for delivery in failed}


async def test_two_housekeepers_send_each_delivery_again_once(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "BULK_RETRY_DELIVERIES", 3)
    await world.endpoint()

    async with kept_house(world.clock, chores_of(world)) as other:
        jobs = [await started_bulk_retry(world, await failed_deliveries(world, 10))]
        jobs.append(await started_bulk_retry(world, await failed_deliveries(world, 10)))
        await house.later(SECOND)
        await other.rest()

    ended = [await progress(world, job) for job in jobs]
    assert {job.state for job in ended} == {BulkRetryState.FINISHED}
    assert sum(job.retried for job in ended) == 20
    assert {delivery.budget for delivery in await world.deliveries()} == {2}


async def test_what_waits_for_a_project_stops_within_a_second_of_its_access(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "EXPIRED_PROJECTS", 2)
    await world.endpoint()
    for _ in range(5):
        await world.complete(await world.project(access_expires_at=world.clock.now() + HOUR))

    await house.later(HOUR - SECOND)
    assert len(await world.queued()) == 5
    await house.later(SECOND)
    assert {(each.status, each.reason) for each in await world.deliveries()} == {
        (DeliveryStatus.CANCELLED, CancelReason.PROJECT_ACCESS_EXPIRED)
    }


async def test_the_history_of_a_deleted_endpoint_is_cleared_away(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "PURGED_ROWS", 2)
    deleted = (await world.endpoint()).view.endpoint
    for _ in range(5):
        await world.complete()
    kept = (await world.endpoint()).view.endpoint
    await world.do(world.service.webhooks.delete, world.owner, deleted.id)
    stays = await world.complete()

    await house.later(MINUTE)

    stored = await world.dump()
    assert [row.id for row in stored["queue"]] == [stays.id]
    assert stored["deliveries"] == []
    assert [row.id for row in stored["endpoints"]] == [kept.id]


async def test_a_listener_that_nobody_serves_for_30_days_is_forgotten(
    world: World, house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "FORGOTTEN_LISTENERS", 2)
    listeners = world.service.listeners
    for name in ("served", "one", "two", "three"):
        await world.do(listeners.register, world.owner, name, None)
    await house.later(20 * DAY)
    served = await world.do(listeners.register, world.owner, "served", None)
    await house.later(10 * DAY - HOUR)
    assert len(await world.see(listeners.page, world.owner, EVERYTHING)) == 4

    await house.later(2 * HOUR)

    assert await world.see(listeners.page, world.owner, EVERYTHING) == [served]


async def test_idempotency_keys_are_forgotten_after_a_day(world: World, house: House) -> None:
    async def claim(key: str) -> None:
        owner, now = world.account.id, world.clock.now()
        await world.do(lambda t: t.idempotency.claim(owner, owner, key, b"", now))

    await claim("old")
    await house.later(MINUTE)
    await claim("young")

    await house.later(DAY)

    assert [row.key for row in (await world.dump())["idempotency_keys"]] == ["young"]


async def test_reports_are_forgotten_when_their_history_is(world: World, house: House) -> None:
    await world.report(world.milestone(await world.project(), report_id="old"))
    await house.later(MINUTE)
    await world.report(world.milestone(await world.project(), report_id="young"))

    await house.later(RETENTION)

    assert [row.report_id for row in (await world.dump())["reports"]] == ["young"]


async def test_the_audit_trail_is_kept_for_400_days(world: World, house: House) -> None:
    old = (await world.endpoint()).view.endpoint
    await house.later(HOUR)
    young = (await world.endpoint()).view.endpoint
    assert {entry.subject for entry in await world.audit()} == {str(old.id), str(young.id)}

    await house.later(400 * DAY)

    assert [entry.subject for entry in await world.audit()] == [str(young.id)]


async def test_there_is_always_room_for_the_history_of_today(world: World, house: House) -> None:
    await world.endpoint()

    for _ in range(3):
        await house.later(10 * DAY)
        await world.complete()

    assert len(await world.deliveries()) == 3


async def test_a_chore_with_more_to_do_goes_on_at_once_and_then_waits_for_its_time() -> None:
    steps: list[str] = []
    answers = iter([True, True, False, False])

    async def step() -> bool:
        steps.append("step")
        return next(answers)

    async with kept_house(VirtualClock(), [Chore("test", MINUTE, step)]) as house:
        assert len(steps) == 3
        await house.later(MINUTE - SECOND)
        assert len(steps) == 3
        await house.later(SECOND)
        assert len(steps) == 4


async def test_a_failing_chore_is_logged_and_tried_again_while_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    async def failing() -> bool:
        done.append("failing")
        raise LookupError("not today")

    async def working() -> bool:
        done.append("working")
        return False

    chores = [Chore("fail", SECOND, failing), Chore("work", SECOND, working)]
    async with kept_house(VirtualClock(), chores) as house:
        await house.later(SECOND)

    assert sorted(done) == ["failing", "failing", "working", "working"]
    assert [record.getMessage() for record in caplog.records] == ["could not fail"] * 2
    assert all(record.exc_info for record in caplog.records)


async def test_a_store_that_is_away_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def step() -> bool:
        raise StoreUnavailable("the database is not available")

    async with kept_house(VirtualClock(), [Chore("tidy", SECOND, step)]):
        pass

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "could not tidy: the database is not available"
    assert record.exc_info is None


async def test_a_cancelled_housekeeper_leaves_in_the_middle_of_a_step() -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def step() -> bool:
        begun.set()
        return await never.wait()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(
                Housekeeper(VirtualClock(), [Chore("test", SECOND, step)]).run()
            )
            await begun.wait()
            running.cancel()

    assert running.cancelled()
