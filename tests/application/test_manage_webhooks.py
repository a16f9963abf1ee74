"""Webhook endpoints: created, listed, changed, disabled, tested, deleted."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from cuepost.application.manage_webhooks import EndpointChange, EndpointView
from cuepost.domain.access import Scope
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import Endpoint, Health, HealthState, Keyring
from cuepost.domain.errors import (
    EndpointDisabled,
    EndpointLimitReached,
    Invalid,
    MissingScope,
    NotFound,
    WebhooksNotEnabled,
)
from cuepost.domain.project import ProjectStatus
from cuepost.ports.records import Page
from tests.application.world import EVERYTHING, RULES, World

URL = "https://hooks.example.com/cue"


async def change(world: World, webhook_id: UUID, **wanted: object) -> EndpointView:
    return await world.do(
        world.service.webhooks.change,
        world.owner,
        webhook_id,
        EndpointChange(**wanted),  # type: ignore[arg-type]  # named by the test
    )


async def test_a_new_endpoint_is_enabled_and_shows_its_secret_once(world: World) -> None:
    now = world.clock.now()
    made = await world.do(
        world.service.webhooks.create, world.owner, "https://HOOKS.example.com", None, "CI"
    )
    assert made.view.endpoint == Endpoint(
        account_id=world.account.id,
        id=made.view.endpoint.id,
        url="https://hooks.example.com/",
        events=("project.completed", "project.failed"),
        description="CI",
        enabled=True,
        created_at=now,
        updated_at=now,
    )
    assert made.view.health == Health(HealthState.NEVER_DELIVERED, now, None, 0)
    assert made.view.keyring == Keyring(made.view.keyring.current)
    assert made.view.keyring.current.hint == made.secret.hint
    assert made.secret.reveal().startswith("whsec_")
    assert len(made.secret.key) == 32
    found = await world.see(world.service.webhooks.get, world.owner, made.view.endpoint.id)
    assert found == made.view


@pytest.mark.parametrize("events", [None, []])
async def test_without_chosen_events_the_default_ones_are_subscribed(
    world: World, events: list[str] | None
) -> None:
    made = await world.do(world.service.webhooks.create, world.owner, URL, events, "")
    assert made.view.endpoint.events == ("project.completed", "project.failed")


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://hooks.example.com/", "url_scheme_not_https"),
        ("https://hooks.example.com:8443/", "url_port_not_allowed"),
        ("https://localhost/", "url_host_not_public"),
        ("https://10.0.0.1/", "url_address_not_public"),
    ],
)
async def test_a_receiver_that_may_not_be_called_is_refused(
    world: World, url: str, code: str
) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    before = await world.dump()
    with pytest.raises(Invalid) as refused:
        await world.endpoint(url=url)
    assert [(error.field, error.code) for error in refused.value.errors] == [("url", code)]
    with pytest.raises(Invalid) as refused:
        await change(world, endpoint.id, url=url)
    assert [(error.field, error.code) for error in refused.value.errors] == [("url", code)]
    assert await world.dump() == before


async def test_a_type_that_cannot_be_subscribed_to_is_refused(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    before = await world.dump()
    with pytest.raises(Invalid):
        await world.endpoint("webhook.test")
    with pytest.raises(Invalid):
        await change(world, endpoint.id, events=["project.exploded"])
    assert await world.dump() == before


async def test_an_account_has_a_limit_of_endpoints(world: World) -> None:
    made = [(await world.endpoint()).view.endpoint for _ in range(RULES.endpoint_limit)]
    before = await world.dump()
    with pytest.raises(EndpointLimitReached, match="has 3 endpoints already"):
        await world.endpoint()
    assert await world.dump() == before
    await world.endpoint(caller=await world.new_owner())
    await world.do(world.service.webhooks.delete, world.owner, made[0].id)
    await world.endpoint()


async def test_endpoints_are_listed_newest_first_with_health_and_hints(world: World) -> None:
    one, other = await world.endpoint(), await world.endpoint("project.ready")
    await world.endpoint(caller=await world.new_owner())
    waiting = await world.complete()
    await world.requeue(waiting, DeliveryStatus.RETRYING)
    listed = await world.see(world.service.webhooks.page, world.owner, EVERYTHING)
    assert listed == [
        other.view,
        replace(one.view, health=Health(HealthState.RETRYING, None, None, 1)),
    ]
    behind = Page(limit=5, before=other.view.endpoint.id)
    assert await world.see(world.service.webhooks.page, world.owner, behind) == listed[1:]


async def test_a_change_touches_only_what_it_names(world: World) -> None:
    before = (await world.endpoint("project.ready")).view
    world.clock.advance(1)
    moved = await change(world, before.endpoint.id, url="https://other.example.com/x")
    assert moved.endpoint == replace(
        before.endpoint, url="https://other.example.com/x", updated_at=world.clock.now()
    )
    events = await change(world, before.endpoint.id, events=["project.failed"])
    assert events.endpoint == replace(moved.endpoint, events=("project.failed",))
    described = await change(world, before.endpoint.id, description="New")
    assert described.endpoint == replace(events.endpoint, description="New")
    assert await world.see(world.service.webhooks.get, world.owner, before.endpoint.id) == described


async def test_a_change_that_changes_nothing_leaves_no_trace(world: World) -> None:
    view = (await world.endpoint()).view
    before = await world.dump()
    world.clock.advance(1)
    assert await change(world, view.endpoint.id, url=URL, enabled=True) == view
    assert await change(world, view.endpoint.id) == view
    assert await world.dump() == before


async def test_disabling_stops_what_is_pending_and_enabling_starts_nothing(world: World) -> None:
    one = (await world.endpoint("project.completed")).view.endpoint
    await world.endpoint("project.failed")
    stopping = [await world.complete(), await world.complete()]
    await world.requeue(stopping[0], DeliveryStatus.RETRYING)
    other_project = await world.project(ProjectStatus.PROCESSING)
    await world.report(world.milestone(other_project, "failed"))
    [untouched] = await world.deliveries(event_type="project.failed")
    world.clock.advance(1)
    view = await change(world, one.id, enabled=False)
    assert view.health.state is HealthState.DISABLED
    stopped = [
        replace(
            each,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.ENDPOINT_DISABLED,
            next_attempt_at=None,
            finished_at=world.clock.now(),
        )
        for each in reversed(stopping)
    ]
    assert await world.deliveries(webhook_id=one.id) == stopped
    await change(world, one.id, enabled=True)
    assert await world.deliveries(webhook_id=one.id) == stopped
    assert await world.queued() == {untouched.id}


async def test_an_attempt_in_flight_may_finish_after_the_endpoint_was_disabled(
    world: World,
) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    sending = await world.complete()
    await world.requeue(sending, DeliveryStatus.DELIVERING)
    await world.enable(endpoint.id, False)
    [delivery] = await world.deliveries()
    assert delivery == replace(sending, status=DeliveryStatus.DELIVERING, next_attempt_at=None)
    [row] = (await world.dump())["queue"]
    assert row.stop_reason == CancelReason.ENDPOINT_DISABLED


async def test_a_deleted_endpoint_takes_its_secrets_and_its_history_with_it(world: World) -> None:
    kept, gone = await world.endpoint(), await world.endpoint("project.completed")
    await world.report(world.milestone(await world.project()))
    await world.do(world.service.webhooks.rotate_secret, world.owner, gone.view.endpoint.id)
    await world.do(world.service.webhooks.delete, world.owner, gone.view.endpoint.id)
    assert {each.webhook_id for each in await world.deliveries()} == {kept.view.endpoint.id}
    assert await world.see(world.service.webhooks.page, world.owner, EVERYTHING) == [kept.view]
    with pytest.raises(NotFound):
        await world.see(world.service.webhooks.get, world.owner, gone.view.endpoint.id)
    with pytest.raises(NotFound):
        await world.deliveries(webhook_id=gone.view.endpoint.id)
    dump = await world.dump()
    for table in ("endpoints", "signing_secrets", "deliveries", "queue", "attempts"):
        assert gone.view.endpoint.id not in {value for row in dump[table] for value in row}


async def test_a_test_event_goes_to_this_endpoint_alone(world: World) -> None:
    endpoint = (await world.endpoint("project.ready")).view.endpoint
    await world.endpoint()
    made = await world.do(world.service.webhooks.send_test, world.owner, endpoint.id)
    now = world.clock.now()
    assert made == Delivery(
        account_id=world.account.id,
        id=made.id,
        webhook_id=endpoint.id,
        event_id=made.event_id,
        event_type="webhook.test",
        project_id=None,
        trigger=Trigger.TEST,
        status=DeliveryStatus.PENDING,
        created_at=now,
        next_attempt_at=now,
    )
    assert await world.deliveries() == [made]
    [event] = await world.events()
    assert json.loads(event.body)["data"]["webhookId"] == str(endpoint.id)
    assert await world.queued() == {made.id}


async def test_a_disabled_endpoint_gets_no_test(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.enable(endpoint.id, False)
    before = await world.dump()
    with pytest.raises(EndpointDisabled):
        await world.do(world.service.webhooks.send_test, world.owner, endpoint.id)
    assert await world.dump() == before


async def test_a_test_is_refused_once_the_policy_forbids_the_receiver(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    stricter = world.reassembled(replace(RULES, policy=EgressPolicy(ports=((8443, 8443),))))
    with pytest.raises(Invalid) as refused:
        await stricter.do(stricter.service.webhooks.send_test, world.owner, endpoint.id)
    assert [error.code for error in refused.value.errors] == ["url_port_not_allowed"]


async def test_a_closed_account_may_do_nothing_with_webhooks(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    closed, webhooks = replace(world.owner, webhooks_enabled=False), world.service.webhooks
    before = await world.dump()
    with pytest.raises(WebhooksNotEnabled):
        await world.endpoint(caller=closed)
    with pytest.raises(WebhooksNotEnabled):
        await world.see(webhooks.page, closed, EVERYTHING)
    with pytest.raises(WebhooksNotEnabled):
        await world.do(webhooks.change, closed, endpoint.id, EndpointChange())
    for action in (webhooks.get, webhooks.delete, webhooks.rotate_secret, webhooks.send_test):
        with pytest.raises(WebhooksNotEnabled):
            await world.do(action, closed, endpoint.id)
    assert await world.dump() == before


async def test_reading_is_allowed_with_the_read_scope_and_nothing_else(world: World) -> None:
    view, webhooks = (await world.endpoint()).view, world.service.webhooks
    reader = replace(world.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    assert await world.see(webhooks.get, reader, view.endpoint.id) == view
    assert await world.see(webhooks.page, reader, EVERYTHING) == [view]
    before = await world.dump()
    with pytest.raises(MissingScope):
        await world.endpoint(caller=reader)
    with pytest.raises(MissingScope):
        await world.do(webhooks.change, reader, view.endpoint.id, EndpointChange())
    for action in (webhooks.delete, webhooks.rotate_secret, webhooks.end_overlap):
        with pytest.raises(MissingScope):
            await world.do(action, reader, view.endpoint.id)
    assert await world.dump() == before


async def test_an_endpoint_of_another_account_is_not_found(world: World) -> None:
    theirs = (await world.endpoint(caller=await world.new_owner())).view.endpoint
    webhooks, before = world.service.webhooks, await world.dump()
    for webhook_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await change(world, webhook_id, enabled=False)
        for action in (
            webhooks.get,
            webhooks.delete,
            webhooks.rotate_secret,
            webhooks.end_overlap,
            webhooks.send_test,
        ):
            with pytest.raises(NotFound):
                await world.do(action, world.owner, webhook_id)
    assert await world.dump() == before
