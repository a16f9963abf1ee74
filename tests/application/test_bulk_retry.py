"""Sending many ended deliveries again: step by step, with progress, skips and an end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuepost.domain.access import Scope
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.errors import EndpointDisabled, Invalid, MissingScope, NotFound
from cuepost.testing import START
from tests.application.world import OPERATOR, World

FAILED, CANCELLED = DeliveryStatus.FAILED, DeliveryStatus.CANCELLED


async def start(
    world: World,
    webhook_id: UUID,
    *,
    since: datetime = START,
    until: datetime | None = None,
    statuses: Sequence[DeliveryStatus] = (),
    dry_run: bool = False,
) -> BulkRetry:
    return await world.do(
        world.service.redeliver.start_bulk,
        world.owner,
        webhook_id,
        since=since,
        until=until,
        statuses=statuses,
        dry_run=dry_run,
    )


async def step(world: World, job: BulkRetry, limit: int = 100) -> bool:
    return await world.do(world.service.redeliver.bulk_step, job.account_id, job.id, limit)


async def look(world: World, job: BulkRetry) -> BulkRetry:
    return await world.see(world.service.redeliver.bulk, world.owner, job.webhook_id, job.id)


async def history(world: World, *statuses: DeliveryStatus) -> tuple[UUID, list[Delivery]]:
    """An endpoint, and one delivery for each status; then a moment passes."""
    webhook = (await world.endpoint()).view.endpoint
    made = [await world.complete() for _ in statuses]
    for delivery, status in zip(made, statuses, strict=True):
        await world.end(delivery, status)
    world.clock.advance(1)
    return webhook.id, made


async def test_a_bulk_retry_sends_failed_and_cancelled_ones_again_in_steps(world: World) -> None:
    webhook_id, made = await history(
        world, FAILED, CANCELLED, DeliveryStatus.DELIVERED, FAILED, FAILED
    )
    still_pending = await world.complete()
    world.clock.advance(1)
    job = await start(world, webhook_id)
    assert job == BulkRetry(
        account_id=world.account.id,
        id=job.id,
        webhook_id=webhook_id,
        since=START,
        until=world.clock.now(),
        statuses=(FAILED, CANCELLED),
        state=BulkRetryState.RUNNING,
        count=4,
        created_at=world.clock.now(),
    )
    assert await look(world, job) == job
    assert await step(world, job, 3)
    assert await look(world, job) == replace(job, retried=3, position=made[3].id)
    assert await step(world, job, 3)
    assert not await step(world, job, 3)
    world.clock.advance(1)
    assert await look(world, job) == replace(
        job,
        state=BulkRetryState.FINISHED,
        retried=4,
        position=made[4].id,
        finished_at=world.clock.now() - timedelta(seconds=1),
    )
    resent = {each.id for index, each in enumerate(made) if index != 2}
    assert await world.queued() == resent | {still_pending.id}
    assert {each.budget for each in await world.deliveries() if each.id in resent} == {2}
    assert not await step(world, job)


async def test_what_fails_again_meanwhile_is_not_sent_a_third_time(world: World) -> None:
    webhook_id, [delivery] = await history(world, FAILED)
    job = await start(world, webhook_id)
    assert await step(world, job)
    await world.end(delivery, FAILED)
    assert not await step(world, job)
    assert await world.queued() == set()


async def test_a_dry_run_counts_and_stores_nothing(world: World) -> None:
    webhook_id, _ = await history(world, FAILED, FAILED)
    before = await world.dump()
    job = await start(world, webhook_id, dry_run=True)
    assert job.count == 2
    assert await world.dump() == before


async def test_the_window_and_the_statuses_narrow_the_choice(world: World) -> None:
    webhook_id, _ = await history(world, FAILED, CANCELLED)
    middle = world.clock.now()
    later = await world.complete()
    await world.end(later, DeliveryStatus.DELIVERED)
    world.clock.advance(1)
    delivered = [DeliveryStatus.DELIVERED]
    for narrowed, count in (
        (await start(world, webhook_id, dry_run=True), 2),
        (await start(world, webhook_id, dry_run=True, statuses=[CANCELLED]), 1),
        (await start(world, webhook_id, dry_run=True, statuses=delivered), 1),
        (await start(world, webhook_id, dry_run=True, since=middle), 0),
        (await start(world, webhook_id, dry_run=True, since=middle, statuses=delivered), 1),
        (await start(world, webhook_id, dry_run=True, until=middle, statuses=delivered), 0),
        (await start(world, webhook_id, dry_run=True, since=datetime.min.replace(tzinfo=UTC)), 2),
    ):
        assert narrowed.count == count


async def test_statuses_are_kept_once_in_their_own_order(world: World) -> None:
    webhook_id, _ = await history(world)
    job = await start(world, webhook_id, statuses=[CANCELLED, FAILED, CANCELLED])
    assert job.statuses == (FAILED, CANCELLED)
    assert (await look(world, job)).statuses == (FAILED, CANCELLED)


async def test_a_status_that_is_not_final_is_refused(world: World) -> None:
    webhook_id, _ = await history(world)
    before = await world.dump()
    with pytest.raises(Invalid) as refused:
        await start(world, webhook_id, statuses=[FAILED, DeliveryStatus.PENDING])
    assert [(error.field, error.code) for error in refused.value.errors] == [
        ("statuses", "status_not_final")
    ]
    assert await world.dump() == before


async def test_deliveries_of_projects_that_may_not_notify_are_skipped(world: World) -> None:
    webhook = (await world.endpoint()).view.endpoint
    projects = [await world.project() for _ in range(3)]
    made = [await world.complete(project) for project in projects]
    test = await world.do(world.service.webhooks.send_test, world.owner, webhook.id)
    for delivery in (*made, test):
        await world.end(delivery, FAILED)
    await world.do(world.service.projects.delete, world.owner, projects[1].id)
    world.clock.advance(1)
    job = await start(world, webhook.id)
    assert await step(world, job)
    assert await look(world, job) == replace(job, retried=3, skipped=1, position=test.id)
    assert await world.queued() == {made[0].id, made[2].id, test.id}


async def test_a_cancelled_bulk_retry_leaves_the_rest_as_it_is(world: World) -> None:
    webhook_id, made = await history(world, FAILED, FAILED, FAILED)
    job = await start(world, webhook_id)
    await step(world, job, 1)
    cancel = world.service.redeliver.cancel_bulk
    cancelled = await world.do(cancel, world.owner, webhook_id, job.id)
    assert cancelled == replace(
        job,
        state=BulkRetryState.CANCELLED,
        retried=1,
        position=made[0].id,
        finished_at=world.clock.now(),
    )
    assert not await step(world, job)
    assert await world.queued() == {made[0].id}
    world.clock.advance(1)
    assert await world.do(cancel, world.owner, webhook_id, job.id) == cancelled


async def test_a_finished_bulk_retry_cannot_be_cancelled_any_more(world: World) -> None:
    webhook_id, _ = await history(world)
    job = await start(world, webhook_id)
    assert not await step(world, job)
    finished = await look(world, job)
    assert finished.state is BulkRetryState.FINISHED
    cancel = world.service.redeliver.cancel_bulk
    assert await world.do(cancel, world.owner, webhook_id, job.id) == finished


async def test_a_disabled_endpoint_ends_its_bulk_retry(world: World) -> None:
    webhook_id, made = await history(world, FAILED, FAILED)
    with_more = await start(world, webhook_id)
    await step(world, with_more, 1)
    await world.enable(webhook_id, False)
    assert not await step(world, with_more)
    assert (await look(world, with_more)).state is BulkRetryState.FINISHED
    assert await world.queued() == set()
    with pytest.raises(EndpointDisabled):
        await start(world, webhook_id)
    assert [each.status for each in await world.deliveries()] == [FAILED, CANCELLED]
    assert made[0].id < made[1].id


async def test_a_closed_account_ends_its_bulk_retries(world: World) -> None:
    webhook_id, _ = await history(world, FAILED)
    job = await start(world, webhook_id)
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)
    assert not await step(world, job)
    assert (await look(world, job)).state is BulkRetryState.FINISHED
    assert await world.queued() == set()


async def test_with_its_endpoint_a_bulk_retry_is_gone(world: World) -> None:
    webhook_id, _ = await history(world, FAILED)
    job = await start(world, webhook_id)
    await world.do(world.service.webhooks.delete, world.owner, webhook_id)
    assert not await step(world, job)
    with pytest.raises(NotFound):
        await look(world, job)


async def test_what_is_not_in_the_account_is_not_found(world: World) -> None:
    webhook_id, _ = await history(world, FAILED)
    job = await start(world, webhook_id)
    other = (await world.endpoint("project.ready")).view.endpoint
    stranger = await world.new_owner()
    redeliver, nothing = world.service.redeliver, UUID(int=1)
    for caller, named, job_id in (
        (world.owner, other.id, job.id),
        (world.owner, webhook_id, nothing),
        (stranger, webhook_id, job.id),
    ):
        with pytest.raises(NotFound):
            await world.see(redeliver.bulk, caller, named, job_id)
        with pytest.raises(NotFound):
            await world.do(redeliver.cancel_bulk, caller, named, job_id)
    with pytest.raises(NotFound):
        await start(world, nothing)


async def test_reading_progress_needs_less_than_changing_it(world: World) -> None:
    webhook_id, _ = await history(world, FAILED)
    job = await start(world, webhook_id)
    reader = replace(world.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    assert await world.see(world.service.redeliver.bulk, reader, webhook_id, job.id) == job
    with pytest.raises(MissingScope):
        await world.do(world.service.redeliver.cancel_bulk, reader, webhook_id, job.id)
