"""Webhook endpoints: created, listed, changed, disabled, tested, deleted."""

import json
from dataclasses import replace
from uuid import UUID

import pytest

from cuepost.application.manage_webhooks import EndpointChange, EndpointView
from cuepost.domain.access import Scope
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.endpoint import Endpoint, Keyring
from cuepost.domain.errors import (
    EndpointDisabled,
    EndpointLimitReached,
    Invalid,
    MissingScope,
    NotFound,
    WebhooksNotEnabled,
)
from cuepost.domain.health import Health, HealthState
from cuepost.domain.project import ProjectStatus
from cuepost.ports.records import Page
from tests.application.harness import EVERYTHING, RULES, Harness

URL = "https://hooks.example.com/cue"


async def change(harness: Harness, webhook_id: UUID, **wanted: object) -> EndpointView:
    return await harness.do(
        harness.service.webhooks.change,
        harness.owner,
        webhook_id,
        EndpointChange(**wanted),  # type: ignore[arg-type]  # named by the test
    )


async def test_a_new_endpoint_is_enabled_and_shows_its_secret_once(harness: Harness) -> None:
    now = harness.clock.now()
    made = await harness.do(
        harness.service.webhooks.create, harness.owner, "https://HOOKS.example.com", None, "CI"
    )
    assert made.view.endpoint == Endpoint(
        account_id=harness.account.id,
        id=made.view.endpoint.id,
        url="https://hooks.example.com/",
        events=("project.completed", "project.failed"),
        description="CI",
        enabled=True,
        created_at=now,
        updated_at=now,
    )
    assert made.view.health == Health(HealthState.UNKNOWN, now, None, 0)
    assert made.view.keyring == Keyring(made.view.keyring.current)
    assert made.view.keyring.current.hint == made.secret.hint
    assert made.secret.reveal().startswith("whsec_")
    assert len(made.secret.key) == 32
    found = await harness.see(harness.service.webhooks.get, harness.owner, made.view.endpoint.id)
    assert found == made.view


@pytest.mark.parametrize("events", [None, []])
async def test_without_chosen_events_the_default_ones_are_subscribed(
    harness: Harness, events: list[str] | None
) -> None:
    made = await harness.do(harness.service.webhooks.create, harness.owner, URL, events, "")
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
    harness: Harness, url: str, code: str
) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    before = await harness.dump()
    with pytest.raises(Invalid) as refused:
        await harness.endpoint(url=url)
    assert [(error.field, error.code) for error in refused.value.errors] == [("url", code)]
    with pytest.raises(Invalid) as refused:
        await change(harness, endpoint.id, url=url)
    assert [(error.field, error.code) for error in refused.value.errors] == [("url", code)]
    assert await harness.dump() == before


async def test_a_type_that_cannot_be_subscribed_to_is_refused(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    before = await harness.dump()
    with pytest.raises(Invalid):
        await harness.endpoint("webhook.test")
    with pytest.raises(Invalid):
        await change(harness, endpoint.id, events=["project.exploded"])
    assert await harness.dump() == before


async def test_an_account_has_a_limit_of_endpoints(harness: Harness) -> None:
    made = [(await harness.endpoint()).view.endpoint for _ in range(RULES.endpoint_limit)]
    before = await harness.dump()
    with pytest.raises(EndpointLimitReached, match="has 3 endpoints already"):
        await harness.endpoint()
    assert await harness.dump() == before
    await harness.endpoint(caller=await harness.new_owner())
    await harness.do(harness.service.webhooks.delete, harness.owner, made[0].id)
    await harness.endpoint()


async def test_endpoints_are_listed_newest_first_with_health_and_hints(harness: Harness) -> None:
    one, other = await harness.endpoint(), await harness.endpoint("project.ready")
    await harness.endpoint(caller=await harness.new_owner())
    waiting = await harness.complete()
    await harness.requeue(waiting, DeliveryStatus.RETRYING)
    listed = await harness.see(harness.service.webhooks.page, harness.owner, EVERYTHING)
    assert listed == [
        other.view,
        replace(one.view, health=Health(HealthState.DEGRADED, None, None, 1)),
    ]
    behind = Page(limit=5, before=other.view.endpoint.id)
    assert await harness.see(harness.service.webhooks.page, harness.owner, behind) == listed[1:]


async def test_a_change_touches_only_what_it_names(harness: Harness) -> None:
    before = (await harness.endpoint("project.ready")).view
    harness.clock.advance(1)
    moved = await change(harness, before.endpoint.id, url="https://other.example.com/x")
    assert moved.endpoint == replace(
        before.endpoint, url="https://other.example.com/x", updated_at=harness.clock.now()
    )
    events = await change(harness, before.endpoint.id, events=["project.failed"])
    assert events.endpoint == replace(moved.endpoint, events=("project.failed",))
    described = await change(harness, before.endpoint.id, description="New")
    assert described.endpoint == replace(events.endpoint, description="New")
    assert (
        await harness.see(harness.service.webhooks.get, harness.owner, before.endpoint.id)
        == described
    )


async def test_a_change_that_changes_nothing_leaves_no_trace(harness: Harness) -> None:
    view = (await harness.endpoint()).view
    before = await harness.dump()
    harness.clock.advance(1)
    assert await change(harness, view.endpoint.id, url=URL, enabled=True) == view
    assert await change(harness, view.endpoint.id) == view
    assert await harness.dump() == before


async def test_disabling_stops_what_is_pending_and_enabling_starts_nothing(
    harness: Harness,
) -> None:
    one = (await harness.endpoint("project.completed")).view.endpoint
    await harness.endpoint("project.failed")
    stopping = [await harness.complete(), await harness.complete()]
    await harness.requeue(stopping[0], DeliveryStatus.RETRYING)
    other_project = await harness.project(ProjectStatus.PROCESSING)
    await harness.report(harness.milestone(other_project, "failed"))
    [untouched] = await harness.deliveries(event_type="project.failed")
    harness.clock.advance(1)
    view = await change(harness, one.id, enabled=False)
    assert view.health.state is HealthState.DISABLED
    stopped = [
        replace(
            each,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.ENDPOINT_DISABLED,
            next_attempt_at=None,
            finished_at=harness.clock.now(),
        )
        for each in reversed(stopping)
    ]
    assert await harness.deliveries(webhook_id=one.id) == stopped
    await change(harness, one.id, enabled=True)
    assert await harness.deliveries(webhook_id=one.id) == stopped
    assert await harness.queued() == {untouched.id}


async def test_an_attempt_in_flight_may_finish_after_the_endpoint_was_disabled(
    harness: Harness,
) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    sending = await harness.complete()
    await harness.requeue(sending, DeliveryStatus.DELIVERING)
    await harness.enable(endpoint.id, False)
    [delivery] = await harness.deliveries()
    assert delivery == replace(sending, status=DeliveryStatus.DELIVERING, next_attempt_at=None)
    [row] = (await harness.dump())["queue"]
    assert row.stop_reason == CancelReason.ENDPOINT_DISABLED


async def test_a_deleted_endpoint_takes_its_secrets_and_its_history_with_it(
    harness: Harness,
) -> None:
    kept, gone = await harness.endpoint(), await harness.endpoint("project.completed")
    await harness.report(harness.milestone(await harness.project()))
    await harness.do(harness.service.webhooks.rotate_secret, harness.owner, gone.view.endpoint.id)
    await harness.do(harness.service.webhooks.delete, harness.owner, gone.view.endpoint.id)
    assert {each.webhook_id for each in await harness.deliveries()} == {kept.view.endpoint.id}
    assert await harness.see(harness.service.webhooks.page, harness.owner, EVERYTHING) == [
        kept.view
    ]
    with pytest.raises(NotFound):
        await harness.see(harness.service.webhooks.get, harness.owner, gone.view.endpoint.id)
    with pytest.raises(NotFound):
        await harness.deliveries(webhook_id=gone.view.endpoint.id)
    dump = await harness.dump()
    for table in ("endpoints", "signing_secrets", "deliveries", "queue", "attempts"):
        assert gone.view.endpoint.id not in {value for row in dump[table] for value in row}


async def test_a_test_event_goes_to_this_endpoint_alone(harness: Harness) -> None:
    endpoint = (await harness.endpoint("project.ready")).view.endpoint
    await harness.endpoint()
    made = await harness.do(harness.service.webhooks.send_test, harness.owner, endpoint.id)
    now = harness.clock.now()
    assert made == Delivery(
        account_id=harness.account.id,
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
    assert await harness.deliveries() == [made]
    [event] = await harness.events()
    assert json.loads(event.body)["data"]["webhookId"] == str(endpoint.id)
    assert await harness.queued() == {made.id}


async def test_a_disabled_endpoint_gets_no_test(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.enable(endpoint.id, False)
    before = await harness.dump()
    with pytest.raises(EndpointDisabled):
        await harness.do(harness.service.webhooks.send_test, harness.owner, endpoint.id)
    assert await harness.dump() == before


async def test_a_test_is_refused_once_the_policy_forbids_the_receiver(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    stricter = harness.reassembled(replace(RULES, policy=EgressPolicy(ports=((8443, 8443),))))
    with pytest.raises(Invalid) as refused:
        await stricter.do(stricter.service.webhooks.send_test, harness.owner, endpoint.id)
    assert [error.code for error in refused.value.errors] == ["url_port_not_allowed"]


async def test_a_closed_account_may_do_nothing_with_webhooks(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    closed, webhooks = replace(harness.owner, webhooks_enabled=False), harness.service.webhooks
    before = await harness.dump()
    with pytest.raises(WebhooksNotEnabled):
        await harness.endpoint(caller=closed)
    with pytest.raises(WebhooksNotEnabled):
        await harness.see(webhooks.page, closed, EVERYTHING)
    with pytest.raises(WebhooksNotEnabled):
        await harness.do(webhooks.change, closed, endpoint.id, EndpointChange())
    for action in (webhooks.get, webhooks.delete, webhooks.rotate_secret, webhooks.send_test):
        with pytest.raises(WebhooksNotEnabled):
            await harness.do(action, closed, endpoint.id)
    assert await harness.dump() == before


async def test_reading_is_allowed_with_the_read_scope_and_nothing_else(harness: Harness) -> None:
    view, webhooks = (await harness.endpoint()).view, harness.service.webhooks
    reader = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    assert await harness.see(webhooks.get, reader, view.endpoint.id) == view
    assert await harness.see(webhooks.page, reader, EVERYTHING) == [view]
    before = await harness.dump()
    with pytest.raises(MissingScope):
        await harness.endpoint(caller=reader)
    with pytest.raises(MissingScope):
        await harness.do(webhooks.change, reader, view.endpoint.id, EndpointChange())
    for action in (webhooks.delete, webhooks.rotate_secret, webhooks.end_overlap):
        with pytest.raises(MissingScope):
            await harness.do(action, reader, view.endpoint.id)
    assert await harness.dump() == before


async def test_an_endpoint_of_another_account_is_not_found(harness: Harness) -> None:
    theirs = (await harness.endpoint(caller=await harness.new_owner())).view.endpoint
    webhooks, before = harness.service.webhooks, await harness.dump()
    for webhook_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await change(harness, webhook_id, enabled=False)
        for action in (
            webhooks.get,
            webhooks.delete,
            webhooks.rotate_secret,
            webhooks.end_overlap,
            webhooks.send_test,
        ):
            with pytest.raises(NotFound):
                await harness.do(action, harness.owner, webhook_id)
    assert await harness.dump() == before


async def test_attempts_that_failed_in_vain_are_not_called_healthy(harness: Harness) -> None:
    """Two attempts got a 500, and the delivery was cancelled."""
    webhook_id = (await harness.endpoint()).view.endpoint.id
    await harness.record(
        await harness.complete(), DeliveryStatus.DELIVERED, outcome=Outcome.DELIVERED
    )
    harness.clock.advance(minutes=10)
    delivery = await harness.complete()
    await harness.record(delivery, DeliveryStatus.RETRYING)
    view = await harness.see(harness.service.webhooks.get, harness.owner, webhook_id)
    troubled_since = harness.clock.now()
    assert (view.health.state, view.health.since) == (HealthState.DEGRADED, troubled_since)
    assert view.health.failing == 1

    harness.clock.advance(minutes=1)
    await harness.record(delivery, DeliveryStatus.RETRYING)
    assert delivery.project_id is not None
    await harness.do(harness.service.projects.delete, harness.owner, delivery.project_id)
    view = await harness.see(harness.service.webhooks.get, harness.owner, webhook_id)
    assert view.health.failing == 0
    assert (view.health.state, view.health.since) == (HealthState.DEGRADED, troubled_since)

    harness.clock.advance(hours=1)
    await harness.record(await harness.complete(), DeliveryStatus.FAILED)
    view = await harness.see(harness.service.webhooks.get, harness.owner, webhook_id)
    assert (view.health.state, view.health.failed) == (HealthState.FAILING, 1)
