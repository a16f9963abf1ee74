"""Whatever is stopped while others write: nothing that was stopped waits to be sent."""

from collections import Counter

from cuepost.application.manage_webhooks import EndpointChange
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import (
    DeliveryInProgress,
    EndpointDisabled,
)
from tests.application.harness import OPERATOR, Harness
from tests.application.racing.instances import Instances, outcome


async def assert_nothing_waits(harness: Harness, *reasons: CancelReason) -> None:
    assert await harness.queued() == set()
    ended = {(each.status, each.reason) for each in await harness.deliveries()}
    assert ended <= {(DeliveryStatus.CANCELLED, reason) for reason in reasons}


async def test_nothing_waits_for_an_endpoint_that_is_disabled_during_reports(
    instances: Instances,
) -> None:
    harness = instances.harness
    webhook_id = (await harness.endpoint()).view.endpoint.id
    for _ in range(instances.rounds):
        await harness.enable(webhook_id, True)
        one, other = await instances.projects(2)
        await instances.race(
            instances.each(1).report(harness.milestone(one)),
            instances.each(0).enable(webhook_id, False),
            instances.each(2).report(harness.milestone(other)),
        )
        await assert_nothing_waits(harness, CancelReason.ENDPOINT_DISABLED)
    assert len(await harness.deliveries()) == len(await harness.events()) == 2 * instances.rounds


async def test_nothing_waits_for_a_project_that_is_deleted_during_a_report(
    instances: Instances,
) -> None:
    harness = instances.harness
    await harness.endpoint()
    remove = instances.each(1).service.projects.delete
    for place, project in enumerate(await instances.projects(instances.rounds)):
        work = [
            instances.each(0).report(harness.milestone(project)),
            instances.each(1).do(remove, harness.owner, project.id),
        ]
        await instances.race(*(work if place % 2 else work[::-1]))
        await assert_nothing_waits(harness, CancelReason.PROJECT_DELETED)
        assert (await harness.stored(project)).deleted_at is not None


async def test_nothing_waits_in_an_account_whose_access_is_closed_during_reports(
    instances: Instances,
) -> None:
    harness = instances.harness
    await harness.endpoint()
    account_id, set_access = harness.account.id, harness.service.access.set_webhooks
    for _ in range(instances.rounds):
        await harness.do(set_access, OPERATOR, account_id, True)
        one, other = await instances.projects(2)
        await instances.race(
            instances.each(1).report(harness.milestone(one)),
            instances.each(0).do(set_access, OPERATOR, account_id, False),
            instances.each(2).report(harness.milestone(other)),
        )
        await assert_nothing_waits(harness, CancelReason.ACCESS_CLOSED)
    await harness.do(set_access, OPERATOR, account_id, True)
    assert len(await harness.deliveries()) == len(await harness.events()) == 2 * instances.rounds


async def test_retries_by_hand_and_reports_do_not_stand_in_each_others_way(
    instances: Instances,
) -> None:
    harness = instances.harness
    webhook_id = (await harness.endpoint()).view.endpoint.id
    retry = harness.service.redeliver.one
    for project in await instances.projects(instances.rounds):
        delivery = await harness.complete(project)
        await harness.end(delivery, DeliveryStatus.FAILED)
        work = [
            outcome(instances.each(place).do(retry, harness.owner, webhook_id, delivery.id))
            for place in range(3)
        ]
        reports = [
            outcome(instances.each(place).report(harness.milestone(project, "exporting")))
            for place in range(2)
        ]
        outcomes = await instances.race(work[0], reports[0], work[1], reports[1], work[2])
        assert Counter(outcomes) == {"done": 3, DeliveryInProgress.code: 2}
        assert await harness.queued() == {delivery.id}
        await harness.end(delivery, DeliveryStatus.DELIVERED)


async def test_a_retry_by_hand_leaves_nothing_at_an_endpoint_that_is_disabled_meanwhile(
    instances: Instances,
) -> None:
    harness = instances.harness
    webhook_id = (await harness.endpoint()).view.endpoint.id
    change, retry = harness.service.webhooks.change, harness.service.redeliver.one
    for project in await instances.projects(instances.rounds):
        await harness.enable(webhook_id, True)
        delivery = await harness.complete(project)
        await harness.end(delivery, DeliveryStatus.CANCELLED)
        retried, disabled = await instances.race(
            outcome(instances.each(1).do(retry, harness.owner, webhook_id, delivery.id)),
            outcome(
                instances.each(0).do(
                    change, harness.owner, webhook_id, EndpointChange(enabled=False)
                )
            ),
        )
        assert retried in ("done", EndpointDisabled.code)
        assert disabled == "done"
        await assert_nothing_waits(harness, CancelReason.ENDPOINT_DISABLED)


async def test_a_retry_by_hand_leaves_nothing_where_access_is_closed_meanwhile(
    instances: Instances,
) -> None:
    harness = instances.harness
    webhook_id = (await harness.endpoint()).view.endpoint.id
    account_id, set_access = harness.account.id, harness.service.access.set_webhooks
    for project in await instances.projects(instances.rounds):
        await harness.do(set_access, OPERATOR, account_id, True)
        delivery = await harness.complete(project)
        await harness.end(delivery, DeliveryStatus.CANCELLED)
        await instances.race(
            outcome(instances.each(0).do(set_access, OPERATOR, account_id, False)),
            outcome(
                instances.each(1).do(
                    harness.service.redeliver.one, harness.owner, webhook_id, delivery.id
                )
            ),
        )
        await assert_nothing_waits(
            harness, CancelReason.ENDPOINT_DISABLED, CancelReason.ACCESS_CLOSED
        )


async def test_a_test_event_leaves_nothing_where_access_is_closed_meanwhile(
    instances: Instances,
) -> None:
    harness = instances.harness
    webhook_id = (await harness.endpoint()).view.endpoint.id
    account_id, set_access = harness.account.id, harness.service.access.set_webhooks
    for _ in range(instances.rounds):
        await harness.do(set_access, OPERATOR, account_id, True)
        await instances.race(
            outcome(instances.each(0).do(set_access, OPERATOR, account_id, False)),
            outcome(
                instances.each(1).do(harness.service.webhooks.send_test, harness.owner, webhook_id)
            ),
        )
        await assert_nothing_waits(harness, CancelReason.ACCESS_CLOSED)
