"""Whatever is stopped while others write: nothing that was stopped waits to be sent."""

from collections import Counter

from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import (
    DeliveryInProgress,
    EndpointDisabled,
)
from tests.application.racing.rivals import Rivals, outcome
from tests.application.world import OPERATOR, World


async def assert_nothing_waits(world: World, *reasons: CancelReason) -> None:
    assert await world.queued() == set()
    ended = {(each.status, each.reason) for each in await world.deliveries()}
    assert ended <= {(DeliveryStatus.CANCELLED, reason) for reason in reasons}


async def test_nothing_waits_for_an_endpoint_that_is_disabled_during_reports(
    rivals: Rivals,
) -> None:
    world = rivals.world
    webhook_id = (await world.endpoint()).view.endpoint.id
    for _ in range(rivals.rounds):
        await world.enable(webhook_id, True)
        one, other = await rivals.projects(2)
        await rivals.race(
            rivals.each(1).report(world.milestone(one)),
            rivals.each(0).enable(webhook_id, False),
            rivals.each(2).report(world.milestone(other)),
        )
        await assert_nothing_waits(world, CancelReason.ENDPOINT_DISABLED)
    assert len(await world.deliveries()) == len(await world.events()) == 2 * rivals.rounds


async def test_nothing_waits_for_a_project_that_is_deleted_during_a_report(
    rivals: Rivals,
) -> None:
    world = rivals.world
    await world.endpoint()
    remove = rivals.each(1).service.projects.delete
    for place, project in enumerate(await rivals.projects(rivals.rounds)):
        work = [
            rivals.each(0).report(world.milestone(project)),
            rivals.each(1).do(remove, world.owner, project.id),
        ]
        await rivals.race(*(work if place % 2 else work[::-1]))
        await assert_nothing_waits(world, CancelReason.PROJECT_DELETED)
        assert (await world.stored(project)).deleted_at is not None


async def test_nothing_waits_in_an_account_whose_access_is_closed_during_reports(
    rivals: Rivals,
) -> None:
    world = rivals.world
    await world.endpoint()
    account_id, set_access = world.account.id, world.service.access.set_webhooks
    for _ in range(rivals.rounds):
        await world.do(set_access, OPERATOR, account_id, True)
        one, other = await rivals.projects(2)
        await rivals.race(
            rivals.each(1).report(world.milestone(one)),
            rivals.each(0).do(set_access, OPERATOR, account_id, False),
            rivals.each(2).report(world.milestone(other)),
        )
        await assert_nothing_waits(world, CancelReason.ACCESS_CLOSED)
    await world.do(set_access, OPERATOR, account_id, True)
    assert len(await world.deliveries()) == len(await world.events()) == 2 * rivals.rounds


async def test_retries_by_hand_and_reports_do_not_stand_in_each_others_way(
    rivals: Rivals,
) -> None:
    world = rivals.world
    webhook_id = (await world.endpoint()).view.endpoint.id
    retry = world.service.redeliver.one
    for project in await rivals.projects(rivals.rounds):
        delivery = await world.complete(project)
        await world.end(delivery, DeliveryStatus.FAILED)
        work = [
            outcome(rivals.each(place).do(retry, world.owner, webhook_id, delivery.id))
            for place in range(3)
        ]
        reports = [
            outcome(rivals.each(place).report(world.milestone(project, "exporting")))
            for place in range(2)
        ]
        outcomes = await rivals.race(work[0], reports[0], work[1], reports[1], work[2])
        assert Counter(outcomes) == {"done": 3, DeliveryInProgress.code: 2}
        assert await world.queued() == {delivery.id}
        await world.end(delivery, DeliveryStatus.DELIVERED)


async def test_a_retry_by_hand_leaves_nothing_at_an_endpoint_that_is_disabled_meanwhile(
    rivals: Rivals,
) -> None:
    world = rivals.world
    webhook_id = (await world.endpoint()).view.endpoint.id
    change, retry = world.service.webhooks.change, world.service.redeliver.one
    for project in await rivals.projects(rivals.rounds):
        await world.enable(webhook_id, True)
        delivery = await world.complete(project)
        await world.end(delivery, DeliveryStatus.CANCELLED)
        retried, disabled = await rivals.race(
            outcome(rivals.each(1).do(retry, world.owner, webhook_id, delivery.id)),
            outcome(
                rivals.each(0).do(change, world.owner, webhook_id, EndpointChange(enabled=False))
            ),
        )
        assert retried in ("done", EndpointDisabled.code)
        assert disabled == "done"
        await assert_nothing_waits(world, CancelReason.ENDPOINT_DISABLED)


async def test_a_retry_by_hand_leaves_nothing_where_access_is_closed_meanwhile(
    rivals: Rivals,
) -> None:
    world = rivals.world
    webhook_id = (await world.endpoint()).view.endpoint.id
    account_id, set_access = world.account.id, world.service.access.set_webhooks
    for project in await rivals.projects(rivals.rounds):
        await world.do(set_access, OPERATOR, account_id, True)
        delivery = await world.complete(project)
        await world.end(delivery, DeliveryStatus.CANCELLED)
        await rivals.race(
            outcome(rivals.each(0).do(set_access, OPERATOR, account_id, False)),
            outcome(
                rivals.each(1).do(world.service.redeliver.one, world.owner, webhook_id, delivery.id)
            ),
        )
        await assert_nothing_waits(
            world, CancelReason.ENDPOINT_DISABLED, CancelReason.ACCESS_CLOSED
        )


async def test_a_test_event_leaves_nothing_where_access_is_closed_meanwhile(rivals: Rivals) -> None:
    world = rivals.world
    webhook_id = (await world.endpoint()).view.endpoint.id
    account_id, set_access = world.account.id, world.service.access.set_webhooks
    for _ in range(rivals.rounds):
        await world.do(set_access, OPERATOR, account_id, True)
        await rivals.race(
            outcome(rivals.each(0).do(set_access, OPERATOR, account_id, False)),
            outcome(rivals.each(1).do(world.service.webhooks.send_test, world.owner, webhook_id)),
        )
        await assert_nothing_waits(world, CancelReason.ACCESS_CLOSED)
