"""Access windows end by themselves; what still waits for such a project then stops."""

from dataclasses import replace
from datetime import timedelta

from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from tests.application.harness import Harness


async def expiring(harness: Harness, after: timedelta) -> Delivery:
    project = await harness.project(access_expires_at=harness.clock.now() + after)
    return await harness.complete(project)


def stopped(delivery: Delivery, harness: Harness) -> Delivery:
    return replace(
        delivery,
        status=DeliveryStatus.CANCELLED,
        reason=CancelReason.PROJECT_ACCESS_EXPIRED,
        next_attempt_at=None,
        finished_at=harness.clock.now(),
    )


async def test_at_the_end_of_the_window_pending_notifications_stop(harness: Harness) -> None:
    await harness.endpoint()
    soon = await expiring(harness, timedelta(seconds=60))
    later = await expiring(harness, timedelta(seconds=61))
    endless = await harness.complete()
    harness.clock.advance(59.999)
    assert not await harness.service.maintenance.expiry.step(10)
    assert await harness.deliveries() == [endless, later, soon]
    harness.clock.advance(0.001)
    assert not await harness.service.maintenance.expiry.step(10)
    assert await harness.deliveries() == [endless, later, stopped(soon, harness)]
    assert await harness.queued() == {endless.id, later.id}


async def test_what_waits_for_another_attempt_stops_as_well(harness: Harness) -> None:
    await harness.endpoint()
    waiting = await expiring(harness, timedelta(seconds=60))
    await harness.requeue(waiting, DeliveryStatus.RETRYING)
    harness.clock.advance(60)
    await harness.service.maintenance.expiry.step(10)
    assert await harness.deliveries() == [stopped(waiting, harness)]


async def test_a_full_step_says_that_there_may_be_more(harness: Harness) -> None:
    await harness.endpoint()
    made = [await expiring(harness, timedelta(seconds=60)) for _ in range(3)]
    harness.clock.advance(60)
    assert await harness.service.maintenance.expiry.step(2)
    assert len(await harness.queued()) == 1
    assert not await harness.service.maintenance.expiry.step(2)
    assert await harness.deliveries() == [stopped(each, harness) for each in reversed(made)]
    assert not await harness.service.maintenance.expiry.step(2)


async def test_an_expired_project_is_looked_at_once_and_its_ended_deliveries_stay_as_they_are(
    harness: Harness,
) -> None:
    await harness.endpoint()
    await harness.end(await expiring(harness, timedelta(seconds=60)), DeliveryStatus.DELIVERED)
    before = await harness.deliveries()
    harness.clock.advance(60)
    assert await harness.service.maintenance.expiry.step(1)
    assert await harness.deliveries() == before
    assert not await harness.service.maintenance.expiry.step(1)
