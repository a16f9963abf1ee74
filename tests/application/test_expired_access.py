"""Access windows end by themselves; what still waits for such a project then stops."""

from dataclasses import replace
from datetime import timedelta

from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from tests.application.world import World


async def expiring(world: World, after: timedelta) -> Delivery:
    project = await world.project(access_expires_at=world.clock.now() + after)
    return await world.complete(project)


def stopped(delivery: Delivery, world: World) -> Delivery:
    return replace(
        delivery,
        status=DeliveryStatus.CANCELLED,
        reason=CancelReason.PROJECT_ACCESS_EXPIRED,
        next_attempt_at=None,
        finished_at=world.clock.now(),
    )


async def test_at_the_end_of_the_window_pending_notifications_stop(world: World) -> None:
    await world.endpoint()
    soon = await expiring(world, timedelta(seconds=60))
    later = await expiring(world, timedelta(seconds=61))
    endless = await world.complete()
    world.clock.advance(59.999)
    assert not await world.service.expiry.step(10)
    assert await world.deliveries() == [endless, later, soon]
    world.clock.advance(0.001)
    assert not await world.service.expiry.step(10)
    assert await world.deliveries() == [endless, later, stopped(soon, world)]
    assert await world.queued() == {endless.id, later.id}


async def test_what_waits_for_another_attempt_stops_as_well(world: World) -> None:
    await world.endpoint()
    waiting = await expiring(world, timedelta(seconds=60))
    await world.requeue(waiting, DeliveryStatus.RETRYING)
    world.clock.advance(60)
    await world.service.expiry.step(10)
    assert await world.deliveries() == [stopped(waiting, world)]


async def test_a_full_step_says_that_there_may_be_more(world: World) -> None:
    await world.endpoint()
    made = [await expiring(world, timedelta(seconds=60)) for _ in range(3)]
    world.clock.advance(60)
    assert await world.service.expiry.step(2)
    assert len(await world.queued()) == 1
    assert not await world.service.expiry.step(2)
    assert await world.deliveries() == [stopped(each, world) for each in reversed(made)]
    assert not await world.service.expiry.step(2)


async def test_an_expired_project_is_looked_at_once_and_its_ended_deliveries_stay_as_they_are(
    world: World,
) -> None:
    await world.endpoint()
    await world.end(await expiring(world, timedelta(seconds=60)), DeliveryStatus.DELIVERED)
    before = await world.deliveries()
    world.clock.advance(60)
    assert await world.service.expiry.step(1)
    assert await world.deliveries() == before
    assert not await world.service.expiry.step(1)
