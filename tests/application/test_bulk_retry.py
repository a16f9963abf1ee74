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
from tests.application.harness import OPERATOR, Harness

FAILED, CANCELLED = DeliveryStatus.FAILED, DeliveryStatus.CANCELLED


async def start(
    harness: Harness,
    webhook_id: UUID,
    *,
    since: datetime = START,
    until: datetime | None = None,
    statuses: Sequence[DeliveryStatus] = (),
    dry_run: bool = False,
) -> BulkRetry:
    return await harness.do(
        harness.service.redeliver.start_bulk,
        harness.owner,
        webhook_id,
        since=since,
        until=until,
        statuses=statuses,
        dry_run=dry_run,
    )


async def step(harness: Harness, job: BulkRetry, limit: int = 100) -> bool:
    return await harness.do(harness.service.redeliver.bulk_step, job.account_id, job.id, limit)


async def look(harness: Harness, job: BulkRetry) -> BulkRetry:
    return await harness.see(harness.service.redeliver.bulk, harness.owner, job.webhook_id, job.id)


async def history(harness: Harness, *statuses: DeliveryStatus) -> tuple[UUID, list[Delivery]]:
    """An endpoint, and one delivery for each status; then a moment passes."""
    webhook = (await harness.endpoint()).view.endpoint
    made = [await harness.complete() for _ in statuses]
    for delivery, status in zip(made, statuses, strict=True):
        await harness.end(delivery, status)
    harness.clock.advance(1)
    return webhook.id, made


async def test_a_bulk_retry_sends_failed_and_cancelled_ones_again_in_steps(
    harness: Harness,
) -> None:
    webhook_id, made = await history(
        harness, FAILED, CANCELLED, DeliveryStatus.DELIVERED, FAILED, FAILED
    )
    still_pending = await harness.complete()
    harness.clock.advance(1)
    job = await start(harness, webhook_id)
    assert job == BulkRetry(
        account_id=harness.account.id,
        id=job.id,
        webhook_id=webhook_id,
        since=START,
        until=harness.clock.now(),
        statuses=(FAILED, CANCELLED),
        state=BulkRetryState.RUNNING,
        count=4,
        created_at=harness.clock.now(),
    )
    assert await look(harness, job) == job
    assert await step(harness, job, 3)
    assert await look(harness, job) == replace(job, retried=3, position=made[3].id)
    assert await step(harness, job, 3)
    assert not await step(harness, job, 3)
    harness.clock.advance(1)
    assert await look(harness, job) == replace(
        job,
        state=BulkRetryState.FINISHED,
        retried=4,
        position=made[4].id,
        finished_at=harness.clock.now() - timedelta(seconds=1),
    )
    resent = {each.id for index, each in enumerate(made) if index != 2}
    assert await harness.queued() == resent | {still_pending.id}
    assert {each.budget for each in await harness.deliveries() if each.id in resent} == {2}
    assert not await step(harness, job)


async def test_what_fails_again_meanwhile_is_not_sent_a_third_time(harness: Harness) -> None:
    webhook_id, [delivery] = await history(harness, FAILED)
    job = await start(harness, webhook_id)
    assert await step(harness, job)
    await harness.end(delivery, FAILED)
    assert not await step(harness, job)
    assert await harness.queued() == set()


async def test_a_dry_run_counts_and_stores_nothing(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED, FAILED)
    before = await harness.dump()
    job = await start(harness, webhook_id, dry_run=True)
    assert job.count == 2
    assert await harness.dump() == before


async def test_the_window_and_the_statuses_narrow_the_choice(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED, CANCELLED)
    middle = harness.clock.now()
    later = await harness.complete()
    await harness.end(later, DeliveryStatus.DELIVERED)
    harness.clock.advance(1)
    delivered = [DeliveryStatus.DELIVERED]
    for narrowed, count in (
        (await start(harness, webhook_id, dry_run=True), 2),
        (await start(harness, webhook_id, dry_run=True, statuses=[CANCELLED]), 1),
        (await start(harness, webhook_id, dry_run=True, statuses=delivered), 1),
        (await start(harness, webhook_id, dry_run=True, since=middle), 0),
        (await start(harness, webhook_id, dry_run=True, since=middle, statuses=delivered), 1),
        (await start(harness, webhook_id, dry_run=True, until=middle, statuses=delivered), 0),
        (await start(harness, webhook_id, dry_run=True, since=datetime.min.replace(tzinfo=UTC)), 2),
    ):
        assert narrowed.count == count


async def test_statuses_are_kept_once_in_their_own_order(harness: Harness) -> None:
    webhook_id, _ = await history(harness)
    job = await start(harness, webhook_id, statuses=[CANCELLED, FAILED, CANCELLED])
    assert job.statuses == (FAILED, CANCELLED)
    assert (await look(harness, job)).statuses == (FAILED, CANCELLED)


async def test_a_status_that_is_not_final_is_refused(harness: Harness) -> None:
    webhook_id, _ = await history(harness)
    before = await harness.dump()
    with pytest.raises(Invalid) as refused:
        await start(harness, webhook_id, statuses=[FAILED, DeliveryStatus.PENDING])
    assert [(error.field, error.code) for error in refused.value.errors] == [
        ("statuses", "status_not_final")
    ]
    assert await harness.dump() == before


async def test_deliveries_of_projects_that_may_not_notify_are_skipped(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    projects = [await harness.project() for _ in range(3)]
    made = [await harness.complete(project) for project in projects]
    test = await harness.do(harness.service.webhooks.send_test, harness.owner, webhook.id)
    for delivery in (*made, test):
        await harness.end(delivery, FAILED)
    await harness.do(harness.service.projects.delete, harness.owner, projects[1].id)
    harness.clock.advance(1)
    job = await start(harness, webhook.id)
    assert await step(harness, job)
    assert await look(harness, job) == replace(job, retried=3, skipped=1, position=test.id)
    assert await harness.queued() == {made[0].id, made[2].id, test.id}


async def test_a_cancelled_bulk_retry_leaves_the_rest_as_it_is(harness: Harness) -> None:
    webhook_id, made = await history(harness, FAILED, FAILED, FAILED)
    job = await start(harness, webhook_id)
    await step(harness, job, 1)
    cancel = harness.service.redeliver.cancel_bulk
    cancelled = await harness.do(cancel, harness.owner, webhook_id, job.id)
    assert cancelled == replace(
        job,
        state=BulkRetryState.CANCELLED,
        retried=1,
        position=made[0].id,
        finished_at=harness.clock.now(),
    )
    assert not await step(harness, job)
    assert await harness.queued() == {made[0].id}
    harness.clock.advance(1)
    assert await harness.do(cancel, harness.owner, webhook_id, job.id) == cancelled


async def test_a_finished_bulk_retry_cannot_be_cancelled_any_more(harness: Harness) -> None:
    webhook_id, _ = await history(harness)
    job = await start(harness, webhook_id)
    assert not await step(harness, job)
    finished = await look(harness, job)
    assert finished.state is BulkRetryState.FINISHED
    cancel = harness.service.redeliver.cancel_bulk
    assert await harness.do(cancel, harness.owner, webhook_id, job.id) == finished


async def test_a_disabled_endpoint_ends_its_bulk_retry(harness: Harness) -> None:
    webhook_id, made = await history(harness, FAILED, FAILED)
    with_more = await start(harness, webhook_id)
    await step(harness, with_more, 1)
    await harness.enable(webhook_id, False)
    assert not await step(harness, with_more)
    assert (await look(harness, with_more)).state is BulkRetryState.FINISHED
    assert await harness.queued() == set()
    with pytest.raises(EndpointDisabled):
        await start(harness, webhook_id)
    assert [each.status for each in await harness.deliveries()] == [FAILED, CANCELLED]
    assert made[0].id < made[1].id


async def test_a_closed_account_ends_its_bulk_retries(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED)
    job = await start(harness, webhook_id)
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    assert not await step(harness, job)
    assert (await look(harness, job)).state is BulkRetryState.FINISHED
    assert await harness.queued() == set()


async def test_with_its_endpoint_a_bulk_retry_is_gone(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED)
    job = await start(harness, webhook_id)
    await harness.do(harness.service.webhooks.delete, harness.owner, webhook_id)
    assert not await step(harness, job)
    with pytest.raises(NotFound):
        await look(harness, job)


async def test_what_is_not_in_the_account_is_not_found(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED)
    job = await start(harness, webhook_id)
    other = (await harness.endpoint("project.ready")).view.endpoint
    stranger = await harness.new_owner()
    redeliver, nothing = harness.service.redeliver, UUID(int=1)
    for caller, named, job_id in (
        (harness.owner, other.id, job.id),
        (harness.owner, webhook_id, nothing),
        (stranger, webhook_id, job.id),
    ):
        with pytest.raises(NotFound):
            await harness.see(redeliver.bulk, caller, named, job_id)
        with pytest.raises(NotFound):
            await harness.do(redeliver.cancel_bulk, caller, named, job_id)
    with pytest.raises(NotFound):
        await start(harness, nothing)


async def test_reading_progress_needs_less_than_changing_it(harness: Harness) -> None:
    webhook_id, _ = await history(harness, FAILED)
    job = await start(harness, webhook_id)
    reader = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    assert await harness.see(harness.service.redeliver.bulk, reader, webhook_id, job.id) == job
    with pytest.raises(MissingScope):
        await harness.do(harness.service.redeliver.cancel_bulk, reader, webhook_id, job.id)
