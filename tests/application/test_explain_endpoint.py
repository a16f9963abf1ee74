"""A question that names an endpoint alone is about its newest delivery, or why it has none."""

from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.finding import Cause
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.project import ProcessingError, ProjectKind, ProjectStatus
from tests.application.test_explain_delivery import asked, causes
from tests.application.world import OPERATOR, World
from tests.doors.rest.client import attempt_of

URL, OTHER_URL = "https://hooks.example.com/cue", "https://hooks.example.net/"
NOTHING = f"Nothing was sent to {URL} in the time that history is kept."


async def created(world: World, *events: str, url: str = URL) -> Endpoint:
    return (await world.endpoint(*events, url=url)).view.endpoint


async def send_test(world: World, webhook_id: UUID) -> Delivery:
    world.clock.advance(1)
    return await world.do(world.service.webhooks.send_test, world.owner, webhook_id)


async def test_the_newest_delivery_is_explained_even_if_it_is_a_test(world: World) -> None:
    endpoint = await created(world)
    export = await world.complete()
    of_export = await asked(world, webhook_id=endpoint.id)
    assert (of_export.event and of_export.event.id) == export.event_id
    test = await send_test(world, endpoint.id)
    found = await asked(world, webhook_id=endpoint.id)
    assert (found.project, found.event and found.event.id) == (None, test.event_id)
    [finding] = found.findings
    assert (finding.cause, finding.webhook_id) == (Cause.NOT_SENT_YET, endpoint.id)
    assert finding.delivery == test


async def test_a_test_that_arrived_has_arrived_whatever_projects_do(world: World) -> None:
    endpoint = await created(world)
    await world.complete()
    await world.end(await send_test(world, endpoint.id), DeliveryStatus.DELIVERED)
    world.clock.advance(1)
    await world.project(ProjectStatus.PROCESSING)
    found = await asked(world, webhook_id=endpoint.id)
    assert (causes(found), found.arrived) == ([Cause.DELIVERED], True)


async def test_what_others_got_later_does_not_matter(world: World) -> None:
    one = await created(world, "project.ready")
    other = await created(world, url=OTHER_URL)
    test = await send_test(world, one.id)
    world.clock.advance(1)
    await world.complete_to(other.id)
    newest = await send_test(world, other.id)
    of_one, of_other = [await asked(world, webhook_id=each.id) for each in (one, other)]
    assert (of_one.event and of_one.event.id) == test.event_id
    assert (of_other.event and of_other.event.id) == newest.event_id


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.DELIVERED])
async def test_every_outcome_of_the_last_attempt_has_a_cause(
    world: World, outcome: Outcome
) -> None:
    endpoint = await created(world)
    test = await send_test(world, endpoint.id)
    last = attempt_of(test, outcome=outcome)
    await world.do(lambda transaction: transaction.attempts.add([last]))
    await world.count_attempts(test, 1)
    await world.end(test, DeliveryStatus.FAILED)
    [finding] = (await asked(world, webhook_id=endpoint.id)).findings
    assert finding.cause in (outcome.value, Cause.RECEIVER_ERROR)


async def test_the_delivery_of_a_failed_or_ready_project_is_judged_by_itself(world: World) -> None:
    endpoint = await created(world, "project.failed", "project.ready")
    error = ProcessingError("render_timeout", "The renderer ran out of time.")
    processing = await world.project(ProjectStatus.PROCESSING)
    for report in (
        world.milestone(await world.project(), "failed", error=error),
        world.milestone(processing, "ready"),
    ):
        [answer] = await world.report(report)
        [delivery] = await world.deliveries(event_id=answer.event_id)
        await world.end(delivery, DeliveryStatus.DELIVERED)
        found = await asked(world, webhook_id=endpoint.id)
        assert (found.event and found.event.id) == answer.event_id
        assert (causes(found), found.arrived) == ([Cause.DELIVERED], True)
        world.clock.advance(1)


async def test_what_stops_the_delivery_goes_first(world: World) -> None:
    endpoint = await created(world)
    ends = world.clock.now() + timedelta(seconds=10)
    await world.report(world.milestone(await world.project(access_expires_at=ends)))
    world.clock.advance(60)
    found = await asked(world, webhook_id=endpoint.id)
    assert causes(found) == [Cause.PROJECT_ACCESS_EXPIRED, Cause.NOT_SENT_YET]


async def test_with_a_type_it_is_about_the_newest_delivery_of_that_type(world: World) -> None:
    endpoint = await created(world)
    export = await world.complete()
    await send_test(world, endpoint.id)
    found = await asked(world, webhook_id=endpoint.id, event_type="project.completed")
    assert (found.event and found.event.id) == export.event_id
    missing = await asked(world, webhook_id=endpoint.id, event_type="project.ready")
    assert causes(missing) == [Cause.NOTHING_HAPPENED]
    assert "project.ready" in missing.findings[0].sentence


async def test_a_test_of_another_endpoint_is_none_of_this_one(world: World) -> None:
    one, other = await created(world), await created(world, url=OTHER_URL)
    test = await send_test(world, other.id)
    found = await asked(world, webhook_id=one.id, event_type="webhook.test")
    assert (found.event, causes(found)) == (None, [Cause.NOTHING_HAPPENED])
    [named] = (await asked(world, webhook_id=one.id, event_id=test.event_id)).findings
    assert (named.cause, named.fix) == (
        Cause.NOT_SUBSCRIBED,
        "Send a test event to this endpoint.",
    )


async def test_without_an_event_since_its_creation_that_is_why_nothing_was_sent(
    world: World,
) -> None:
    await world.report(world.milestone(await world.project(ProjectStatus.PROCESSING), "ready"))
    world.clock.advance(1)
    endpoint = await created(world)
    [finding] = (await asked(world, webhook_id=endpoint.id)).findings[:1]
    assert (finding.cause, finding.webhook_id) == (Cause.NOTHING_HAPPENED, endpoint.id)
    assert finding.sentence == (
        f"{NOTHING} No event of the type project.completed or project.failed is on record since "
        "the endpoint was created at 2026-01-02T03:04:06.678Z."
    )


async def test_a_project_under_way_is_named_beside_it(world: World) -> None:
    endpoint = await created(world)
    await world.project(ProjectStatus.PROCESSING)
    found = await asked(world, webhook_id=endpoint.id)
    assert causes(found) == [Cause.NOTHING_HAPPENED, Cause.NOT_EXPORTED_YET]


async def test_a_disabled_endpoint_without_a_delivery_is_told_first(world: World) -> None:
    endpoint = await created(world)
    await world.enable(endpoint.id, enabled=False)
    found = await asked(world, webhook_id=endpoint.id)
    assert causes(found) == [Cause.ENDPOINT_DISABLED, Cause.NOTHING_HAPPENED]
    assert found.findings[0].sentence.startswith(NOTHING)


async def test_an_event_that_it_is_not_subscribed_to_is_why_nothing_was_sent(
    world: World,
) -> None:
    endpoint = await created(world, "project.ready")
    world.clock.advance(1)
    [answer] = await world.report(world.milestone(await world.project()))
    found = await asked(world, webhook_id=endpoint.id)
    assert (found.event and found.event.id) == answer.event_id
    [finding] = found.findings
    assert (finding.cause, finding.webhook_id) == (Cause.NOT_SUBSCRIBED, endpoint.id)
    assert finding.sentence.startswith(f"{NOTHING} The endpoint ")


async def test_an_event_from_before_its_creation_came_too_early(world: World) -> None:
    await world.report(world.milestone(await world.project()))
    world.clock.advance(1)
    endpoint = await created(world)
    assert causes(await asked(world, webhook_id=endpoint.id)) == [Cause.SUBSCRIBED_LATER]


async def test_a_project_that_does_not_notify_is_why_nothing_was_sent(world: World) -> None:
    endpoint = await created(world)
    await world.report(world.milestone(await world.project(kind=ProjectKind.TRANSCRIPT)))
    [finding] = (await asked(world, webhook_id=endpoint.id)).findings
    assert (finding.cause, finding.webhook_id) == (Cause.STANDALONE_TRANSCRIPT, endpoint.id)


async def test_closed_access_is_why_nothing_is_sent_to_any_endpoint(world: World) -> None:
    endpoint = await created(world)
    await send_test(world, endpoint.id)
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)
    assert causes(await asked(world, webhook_id=endpoint.id)) == [Cause.ACCESS_CLOSED]
