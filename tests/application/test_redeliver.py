"""Sending one ended delivery again by hand: the same event, a new budget."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.browse_history import DeliveryView
from cuepost.domain.access import Scope
from cuepost.domain.delivery import FINAL, LIVE, Delivery, DeliveryStatus, Trigger
from cuepost.domain.errors import (
    DeliveryInProgress,
    EndpointDisabled,
    MissingScope,
    NotFound,
    ProjectNotEligible,
    WebhooksNotEnabled,
)
from cuepost.domain.project import Project
from tests.application.harness import Harness


async def ended(
    harness: Harness, status: DeliveryStatus, project: Project | None = None
) -> Delivery:
    made = await harness.complete(project)
    await harness.end(made, status)
    [delivery] = [each for each in await harness.deliveries() if each.id == made.id]
    return delivery


async def retry(harness: Harness, delivery: Delivery) -> DeliveryView:
    return await harness.do(
        harness.service.redeliver.one, harness.owner, delivery.webhook_id, delivery.id
    )


@pytest.mark.parametrize("status", FINAL)
async def test_an_ended_delivery_gets_a_new_budget_for_the_same_event(
    harness: Harness, status: DeliveryStatus
) -> None:
    await harness.endpoint()
    delivery = await ended(harness, status)
    events = await harness.events()
    harness.clock.advance(hours=1)
    again = await retry(harness, delivery)
    assert again == DeliveryView(
        replace(
            delivery,
            status=DeliveryStatus.PENDING,
            reason=None,
            trigger=Trigger.MANUAL,
            budget=2,
            next_attempt_at=harness.clock.now(),
            finished_at=None,
        ),
        None,
    )
    assert await harness.deliveries() == [again.delivery]
    assert await harness.queued() == {delivery.id}
    assert await harness.events() == events


async def test_each_retry_opens_one_more_budget(harness: Harness) -> None:
    await harness.endpoint()
    delivery = await ended(harness, DeliveryStatus.FAILED)
    for budget in (2, 3):
        again = (await retry(harness, delivery)).delivery
        assert (again.budget, again.event_id) == (budget, delivery.event_id)
        await harness.end(again, DeliveryStatus.FAILED)


async def test_the_record_of_a_disabled_time_can_be_sent_once_the_endpoint_is_enabled(
    harness: Harness,
) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    await harness.enable(webhook.id, False)
    missed = await harness.complete()
    with pytest.raises(EndpointDisabled):
        await retry(harness, missed)
    await harness.enable(webhook.id, True)
    assert (await retry(harness, missed)).delivery.status is DeliveryStatus.PENDING


@pytest.mark.parametrize("status", LIVE)
async def test_a_delivery_under_way_is_not_sent_again(
    harness: Harness, status: DeliveryStatus
) -> None:
    await harness.endpoint()
    delivery = await harness.complete()
    await harness.requeue(delivery, status)
    before = await harness.dump()
    with pytest.raises(DeliveryInProgress):
        await retry(harness, delivery)
    assert await harness.dump() == before


async def test_nothing_is_sent_again_for_a_deleted_project(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project()
    delivery = await ended(harness, DeliveryStatus.DELIVERED, project)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    before = await harness.dump()
    with pytest.raises(ProjectNotEligible):
        await retry(harness, delivery)
    assert await harness.dump() == before


async def test_nothing_is_sent_again_for_an_expired_project(harness: Harness) -> None:
    await harness.endpoint()
    end = harness.clock.now() + timedelta(hours=1)
    project = await harness.project(access_expires_at=end)
    delivery = await ended(harness, DeliveryStatus.FAILED, project)
    harness.clock.advance(hours=1)
    with pytest.raises(ProjectNotEligible):
        await retry(harness, delivery)


async def test_a_test_delivery_can_be_sent_again(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    delivery = await harness.do(harness.service.webhooks.send_test, harness.owner, webhook.id)
    await harness.end(delivery, DeliveryStatus.FAILED)
    assert (await retry(harness, delivery)).delivery.budget == 2


async def test_a_delivery_is_sent_again_under_its_own_endpoint_alone(harness: Harness) -> None:
    await harness.endpoint()
    delivery = await ended(harness, DeliveryStatus.FAILED)
    other = (await harness.endpoint("project.ready")).view.endpoint
    stranger = await harness.new_owner()
    before = await harness.dump()
    again = harness.service.redeliver.one
    for caller, webhook_id, delivery_id in (
        (harness.owner, other.id, delivery.id),
        (harness.owner, delivery.webhook_id, UUID(int=1)),
        (harness.owner, UUID(int=1), delivery.id),
        (stranger, delivery.webhook_id, delivery.id),
    ):
        with pytest.raises(NotFound):
            await harness.do(again, caller, webhook_id, delivery_id)
    assert await harness.dump() == before


async def test_sending_again_needs_the_managing_scope_and_an_open_account(harness: Harness) -> None:
    await harness.endpoint()
    delivery = await ended(harness, DeliveryStatus.FAILED)
    reader = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    closed = replace(harness.owner, webhooks_enabled=False)
    again = harness.service.redeliver.one
    with pytest.raises(MissingScope):
        await harness.do(again, reader, delivery.webhook_id, delivery.id)
    with pytest.raises(WebhooksNotEnabled):
        await harness.do(again, closed, delivery.webhook_id, delivery.id)
