"""What happened: deliveries with their attempts, events with their verdicts, the audit trail."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.application.browse_history import DeliveryDetail, DeliveryView, EventView
from cuepost.domain.access import ACCOUNT_SCOPES, Caller, Scope
from cuepost.domain.attempt import Attempt, Outcome, Timings
from cuepost.domain.delivery import Delivery, DeliveryStatus, Trigger
from cuepost.domain.errors import MissingScope, NotFound, WebhooksNotEnabled
from cuepost.domain.project import ProjectStatus
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.records import Page
from tests.application.harness import EVERYTHING, Harness
from tests.support import core_statements


def attempt(delivery: Delivery, number: int, outcome: Outcome) -> Attempt:
    return Attempt(
        account_id=delivery.account_id,
        delivery_id=delivery.id,
        budget=1,
        number=number,
        trigger=Trigger.AUTOMATIC,
        started_at=delivery.created_at + timedelta(minutes=number),
        duration_ms=12.5,
        timings=Timings(dns_ms=1.5, connect_ms=2.0, tls_ms=None, first_byte_ms=9.0),
        signed_with=("whsec_…zabc",),
        request_headers=(("webhook-id", str(delivery.event_id)),),
        response_status=500,
        response_headers=(("server", "nginx"), ("server", "again")),
        response_body=b"\x00\xff not text",
        response_truncated=False,
        outcome=outcome,
    )


async def tried_twice(harness: Harness, delivery: Delivery) -> list[Attempt]:
    """What the engine will leave behind after two attempts."""
    made = [
        attempt(delivery, 1, Outcome.HTTP_ERROR),
        attempt(delivery, 2, Outcome.TIMEOUT),
    ]
    await harness.do(lambda transaction: transaction.attempts.add(made))
    await harness.count_attempts(delivery, 2)
    return made


async def test_a_delivery_is_shown_with_its_event_and_all_attempts(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    delivery = await harness.complete()
    attempts = await tried_twice(harness, delivery)
    detail = await harness.see(
        harness.service.history.delivery, harness.owner, webhook.id, delivery.id
    )
    [event] = await harness.events()
    assert detail == DeliveryDetail(replace(delivery, attempt_count=2), event, attempts)


async def test_a_list_shows_the_last_attempt_of_each_delivery(harness: Harness) -> None:
    await harness.endpoint()
    tried, fresh = await harness.complete(), await harness.complete()
    attempts = await tried_twice(harness, tried)
    assert await harness.see(
        harness.service.history.deliveries, harness.owner, DeliveryFilter(), EVERYTHING
    ) == [
        DeliveryView(fresh, None),
        DeliveryView(replace(tried, attempt_count=2), attempts[1]),
    ]


async def test_deliveries_are_paged_newest_first_by_the_id_before(harness: Harness) -> None:
    await harness.endpoint()
    made = [await harness.complete() for _ in range(5)]
    newest_first, seen, before = made[::-1], list[Delivery](), None
    while page := await harness.see(
        harness.service.history.deliveries, harness.owner, DeliveryFilter(), Page(2, before)
    ):
        seen += [view.delivery for view in page]
        before = page[-1].delivery.id
    assert seen == newest_first


async def test_deliveries_can_be_chosen_by_every_property(harness: Harness) -> None:
    one = (await harness.endpoint("project.completed")).view.endpoint
    other = (await harness.endpoint("project.failed")).view.endpoint
    completed = await harness.complete()
    harness.clock.advance(hours=1)
    project = await harness.project(ProjectStatus.PROCESSING)
    await harness.report(harness.milestone(project, "failed"))
    [failed] = await harness.deliveries(event_type="project.failed")
    await harness.end(failed, DeliveryStatus.FAILED)
    [failed] = await harness.deliveries(status=DeliveryStatus.FAILED)
    for chosen, expected in (
        ({"webhook_id": one.id}, completed),
        ({"webhook_id": other.id}, failed),
        ({"status": DeliveryStatus.PENDING}, completed),
        ({"event_type": "project.failed"}, failed),
        ({"project_id": project.id}, failed),
        ({"event_id": completed.event_id}, completed),
        ({"since": failed.created_at}, failed),
        ({"until": failed.created_at}, completed),
    ):
        assert await harness.deliveries(**chosen) == [expected], chosen
    assert await harness.deliveries(webhook_id=one.id, status=DeliveryStatus.FAILED) == []


async def test_the_deliveries_of_an_unknown_endpoint_are_not_found(harness: Harness) -> None:
    theirs = (await harness.endpoint(caller=await harness.new_owner())).view.endpoint
    for webhook_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await harness.deliveries(webhook_id=webhook_id)


async def test_a_delivery_is_found_under_its_own_endpoint_alone(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    other = (await harness.endpoint("project.ready")).view.endpoint
    delivery = await harness.complete()
    for webhook_id, delivery_id in ((other.id, delivery.id), (webhook.id, UUID(int=1))):
        with pytest.raises(NotFound):
            await harness.see(
                harness.service.history.delivery, harness.owner, webhook_id, delivery_id
            )


async def test_a_delivery_whose_event_has_left_is_not_found(harness: Harness) -> None:
    """Retention takes events and deliveries away in steps, not in one."""
    webhook = (await harness.endpoint()).view.endpoint
    delivery = await harness.complete()
    await harness.sql(lambda t: core_statements.run(t.session, sa.delete(tables.events)))
    with pytest.raises(NotFound):
        await harness.see(harness.service.history.delivery, harness.owner, webhook.id, delivery.id)


async def test_every_event_is_listed_with_its_verdict_for_each_endpoint(harness: Harness) -> None:
    await harness.endpoint()
    await harness.endpoint("project.completed")
    [answer] = await harness.report(harness.milestone(await harness.project()))
    await harness.report(
        harness.milestone(await harness.project(ProjectStatus.PROCESSING), "ready")
    )
    ready, completed = await harness.see(
        harness.service.history.events, harness.owner, EventFilter(), EVERYTHING
    )
    deliveries = await harness.deliveries()
    assert (ready.event.reason, list(ready.deliveries)) == ("not_subscribed", [])
    assert completed == EventView(completed.event, deliveries[::-1])
    assert completed.event.id == answer.event_id
    for view in (ready, completed):
        assert (
            await harness.see(harness.service.history.event, harness.owner, view.event.id) == view
        )


async def test_events_can_be_chosen_by_type_project_and_time(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.PROCESSING)
    await harness.report(harness.milestone(project, "ready"))
    harness.clock.advance(hours=1)
    await harness.report(harness.milestone(await harness.project()))
    completed, ready = await harness.events()
    for chosen, expected in (
        (EventFilter(event_type="project.ready"), ready),
        (EventFilter(project_id=project.id), ready),
        (EventFilter(since=completed.created_at), completed),
        (EventFilter(until=completed.created_at), ready),
    ):
        found = await harness.see(harness.service.history.events, harness.owner, chosen, EVERYTHING)
        assert [view.event for view in found] == [expected], chosen


async def test_nothing_of_another_account_is_ever_seen(harness: Harness) -> None:
    stranger = await harness.new_owner()
    webhook = (await harness.endpoint()).view.endpoint
    delivery = await harness.complete()
    history = harness.service.history
    assert await harness.deliveries(stranger) == []
    assert await harness.events(stranger) == []
    for project_filter in ({"project_id": delivery.project_id}, {"event_id": delivery.event_id}):
        assert await harness.deliveries(stranger, **project_filter) == []
    with pytest.raises(NotFound):
        await harness.see(history.delivery, stranger, webhook.id, delivery.id)
    with pytest.raises(NotFound):
        await harness.see(history.event, stranger, delivery.event_id)
    assert {entry.account_id for entry in await harness.audit(stranger)} == {stranger.account}


async def refusals(harness: Harness, caller: Caller, kind: type[Exception]) -> None:
    history, nothing = harness.service.history, UUID(int=1)
    with pytest.raises(kind):
        await harness.deliveries(caller)
    with pytest.raises(kind):
        await harness.events(caller)
    with pytest.raises(kind):
        await harness.see(history.delivery, caller, nothing, nothing)
    with pytest.raises(kind):
        await harness.see(history.event, caller, nothing)


async def test_history_needs_the_read_scope_and_an_open_account(harness: Harness) -> None:
    blind = ACCOUNT_SCOPES - {Scope.WEBHOOKS_READ, Scope.WEBHOOKS_MANAGE}
    await refusals(harness, replace(harness.owner, scopes=blind), MissingScope)
    await refusals(harness, replace(harness.owner, webhooks_enabled=False), WebhooksNotEnabled)


async def test_the_audit_trail_needs_the_managing_scope(harness: Harness) -> None:
    reader = replace(harness.owner, scopes=frozenset({Scope.WEBHOOKS_READ}))
    with pytest.raises(MissingScope):
        await harness.audit(reader)
