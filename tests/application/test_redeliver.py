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
from tests.application.world import World


async def ended(world: World, status: DeliveryStatus, project: Project | None = None) -> Delivery:
    made = await world.complete(project)
    await world.end(made, status)
    [delivery] = [each for each in await world.deliveries() if each.id == made.id]
    return delivery


async def retry(world: World, delivery: Delivery) -> DeliveryView:
    return await world.do(
        world.service.redeliver.one, world.owner, delivery.webhook_id, delivery.id
    )


@pytest.mark.parametrize("status", FINAL)
async def test_an_ended_delivery_gets_a_new_budget_for_the_same_event(
    world: World, status: DeliveryStatus
) -> None:
    await world.endpoint()
    delivery = await ended(world, status)
    events = await world.events()
    world.clock.advance(hours=1)
    again = await retry(world, delivery)
    assert again == DeliveryView(
        replace(
            delivery,
            status=DeliveryStatus.PENDING,
            reason=None,
            trigger=Trigger.MANUAL,
            budget=2,
            next_attempt_at=world.clock.now(),
            finished_at=None,
        ),
        None,
    )
    assert await world.deliveries() == [again.delivery]
    assert await world.queued() == {delivery.id}
    assert await world.events() == events


async def test_each_retry_opens_one_more_budget(world: World) -> None:
    await world.endpoint()
    delivery = await ended(world, DeliveryStatus.FAILED)
    for budget in (2, 3):
        again = (await retry(world, delivery)).delivery
        assert (again.budget, again.event_id) == (budget, delivery.event_id)
        await world.end(again, DeliveryStatus.FAILED)


async def test_the_record_of_a_disabled_time_can_be_sent_once_the_endpoint_is_enabled(
    world: World,
) -> None:
    webhook = (await world.endpoint()).view.endpoint
    await world.enable(webhook.id, False)
    missed = await world.complete()
    with pytest.raises(EndpointDisabled):
        await retry(world, missed)
    await world.enable(webhook.id, True)
    assert (await retry(world, missed)).delivery.status is DeliveryStatus.PENDING


@pytest.mark.parametrize("status", LIVE)
async def test_a_delivery_under_way_is_not_sent_again(world: World, status: DeliveryStatus) -> None:
    await world.endpoint()
    delivery = await world.complete()
    await world.requeue(delivery, status)
    before = await world.dump()
    with pytest.raises(DeliveryInProgress):
        await retry(world, delivery)
    assert await world.dump() == before


async def test_nothing_is_sent_again_for_a_deleted_project(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    delivery = await ended(world, DeliveryStatus.DELIVERED, project)
    await world.do(world.service.projects.delete, world.owner, project.id)
    before = await world.dump()
    with pytest.raises(ProjectNotEligible):
        await retry(world, delivery)
    assert await world.dump() == before


async def test_nothing_is_sent_again_for_an_expired_project(world: World) -> None:
    await world.endpoint()
    end = world.clock.now() + timedelta(hours=1)
    project = await world.project(access_expires_at=end)
    delivery = await ended(world, DeliveryStatus.FAILED, project)
    world.clock.advance(hours=1)
    with pytest.raises(ProjectNotEligible):
        await retry(world, delivery)


async def test_a_test_delivery_can_be_sent_again(world: World) -> None:
    webhook = (await world.endpoint()).view.endpoint
    delivery = await world.do(world.service.webhooks.send_test, world.owner, webhook.id)
    await world.end(delivery, DeliveryStatus.FAILED)
    assert (await retry(world, delivery)).delivery.budget == 2


async def test_a_delivery_is_sent_again_under_its_own_endpoint_alone(world: World) -> None:
    await world.endpoint()
    delivery = await ended(world, DeliveryStatus.FAILED)
    other = (await world.endpoint("project.ready")).view.endpoint
    stranger = await world.new_owner()
    before = await world.dump()
    again = world.service.redeliver.one
    for caller, webhook_id, delivery_id in (
        (world.owner, other.id, delivery.id),
        (world.owner, delivery.webhook_id, UUID(int=1)),
        (world.owner, UUID(int=1), delivery.id),
        (stranger, delivery.webhook_id, delivery.id),
    ):
        with pytest.raises(NotFound):
            await world.do(again, caller, webhook_id, delivery_id)
    assert await world.dump() == before


async def test_sending_again_needs_the_managing_scope_and_an_open_account(world: World) -> None:
    await world.endpoint()
    delivery = await ended(world, DeliveryStatus.FAILED)
    reader = replace(world.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    closed = replace(world.owner, webhooks_enabled=False)
    again = world.service.redeliver.one
    with pytest.raises(MissingScope):
        await world.do(again, reader, delivery.webhook_id, delivery.id)
    with pytest.raises(WebhooksNotEnabled):
        await world.do(again, closed, delivery.webhook_id, delivery.id)
