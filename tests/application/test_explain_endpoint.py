"""A question that names an endpoint alone is about its newest delivery, or why it has none."""

from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.finding import FindingCause
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.project import ProcessingError, ProjectKind, ProjectStatus
from tests.application.harness import OPERATOR, Harness
from tests.application.test_explain_delivery import asked, causes
from tests.interfaces.rest.client import attempt_of

URL, OTHER_URL = "https://hooks.example.com/cue", "https://hooks.example.net/"
NOTHING = f"Nothing was sent to {URL} in the time that history is kept."


async def created(harness: Harness, *events: str, url: str = URL) -> Endpoint:
    return (await harness.endpoint(*events, url=url)).view.endpoint


async def send_test(harness: Harness, webhook_id: UUID) -> Delivery:
    harness.clock.advance(1)
    return await harness.do(harness.service.webhooks.send_test, harness.owner, webhook_id)


async def test_the_newest_delivery_is_explained_even_if_it_is_a_test(harness: Harness) -> None:
    endpoint = await created(harness)
    export = await harness.complete()
    of_export = await asked(harness, webhook_id=endpoint.id)
    assert (of_export.event and of_export.event.id) == export.event_id
    test = await send_test(harness, endpoint.id)
    found = await asked(harness, webhook_id=endpoint.id)
    assert (found.project, found.event and found.event.id) == (None, test.event_id)
    [finding] = found.findings
    assert (finding.cause, finding.webhook_id) == (FindingCause.NOT_SENT_YET, endpoint.id)
    assert finding.delivery == test


async def test_a_test_that_arrived_has_arrived_whatever_projects_do(harness: Harness) -> None:
    endpoint = await created(harness)
    await harness.complete()
    await harness.end(await send_test(harness, endpoint.id), DeliveryStatus.DELIVERED)
    harness.clock.advance(1)
    await harness.project(ProjectStatus.PROCESSING)
    found = await asked(harness, webhook_id=endpoint.id)
    assert (causes(found), found.arrived) == ([FindingCause.DELIVERED], True)


async def test_what_others_got_later_does_not_matter(harness: Harness) -> None:
    one = await created(harness, "project.ready")
    other = await created(harness, url=OTHER_URL)
    test = await send_test(harness, one.id)
    harness.clock.advance(1)
    await harness.complete_to(other.id)
    newest = await send_test(harness, other.id)
    of_one, of_other = [await asked(harness, webhook_id=each.id) for each in (one, other)]
    assert (of_one.event and of_one.event.id) == test.event_id
    assert (of_other.event and of_other.event.id) == newest.event_id


@pytest.mark.parametrize("outcome", [each for each in Outcome if each is not Outcome.DELIVERED])
async def test_every_outcome_of_the_last_attempt_has_a_cause(
    harness: Harness, outcome: Outcome
) -> None:
    endpoint = await created(harness)
    test = await send_test(harness, endpoint.id)
    last = attempt_of(test, outcome=outcome)
    await harness.do(lambda transaction: transaction.attempts.add([last]))
    await harness.count_attempts(test, 1)
    await harness.end(test, DeliveryStatus.FAILED)
    [finding] = (await asked(harness, webhook_id=endpoint.id)).findings
    assert finding.cause in (outcome.value, FindingCause.RECEIVER_ERROR)


async def test_the_delivery_of_a_failed_or_ready_project_is_judged_by_itself(
    harness: Harness,
) -> None:
    endpoint = await created(harness, "project.failed", "project.ready")
    error = ProcessingError("render_timeout", "The renderer ran out of time.")
    processing = await harness.project(ProjectStatus.PROCESSING)
    for report in (
        harness.milestone(await harness.project(), "failed", error=error),
        harness.milestone(processing, "ready"),
    ):
        [answer] = await harness.report(report)
        [delivery] = await harness.deliveries(event_id=answer.event_id)
        await harness.end(delivery, DeliveryStatus.DELIVERED)
        found = await asked(harness, webhook_id=endpoint.id)
        assert (found.event and found.event.id) == answer.event_id
        assert (causes(found), found.arrived) == ([FindingCause.DELIVERED], True)
        harness.clock.advance(1)


async def test_what_stops_the_delivery_goes_first(harness: Harness) -> None:
    endpoint = await created(harness)
    ends = harness.clock.now() + timedelta(seconds=10)
    await harness.report(harness.milestone(await harness.project(access_expires_at=ends)))
    harness.clock.advance(60)
    found = await asked(harness, webhook_id=endpoint.id)
    assert causes(found) == [FindingCause.PROJECT_ACCESS_EXPIRED, FindingCause.NOT_SENT_YET]


async def test_with_a_type_it_is_about_the_newest_delivery_of_that_type(harness: Harness) -> None:
    endpoint = await created(harness)
    export = await harness.complete()
    await send_test(harness, endpoint.id)
    found = await asked(harness, webhook_id=endpoint.id, event_type="project.completed")
    assert (found.event and found.event.id) == export.event_id
    missing = await asked(harness, webhook_id=endpoint.id, event_type="project.ready")
    assert causes(missing) == [FindingCause.NOTHING_HAPPENED]
    assert "project.ready" in missing.findings[0].sentence


async def test_a_test_of_another_endpoint_is_none_of_this_one(harness: Harness) -> None:
    one, other = await created(harness), await created(harness, url=OTHER_URL)
    test = await send_test(harness, other.id)
    found = await asked(harness, webhook_id=one.id, event_type="webhook.test")
    assert (found.event, causes(found)) == (None, [FindingCause.NOTHING_HAPPENED])
    [named] = (await asked(harness, webhook_id=one.id, event_id=test.event_id)).findings
    assert (named.cause, named.fix) == (
        FindingCause.NOT_SUBSCRIBED,
        "Send a test event to this endpoint.",
    )


async def test_without_an_event_since_its_creation_that_is_why_nothing_was_sent(
    harness: Harness,
) -> None:
    await harness.report(
        harness.milestone(await harness.project(ProjectStatus.PROCESSING), "ready")
    )
    harness.clock.advance(1)
    endpoint = await created(harness)
    [finding] = (await asked(harness, webhook_id=endpoint.id)).findings[:1]
    assert (finding.cause, finding.webhook_id) == (FindingCause.NOTHING_HAPPENED, endpoint.id)
    assert finding.sentence == (
        f"{NOTHING} There is no event of the type project.completed or project.failed since the "
        "endpoint was created at 2026-01-02T03:04:06.678Z."
    )


async def test_a_project_under_way_is_named_beside_it(harness: Harness) -> None:
    endpoint = await created(harness)
    await harness.project(ProjectStatus.PROCESSING)
    found = await asked(harness, webhook_id=endpoint.id)
    assert causes(found) == [FindingCause.NOTHING_HAPPENED, FindingCause.NOT_EXPORTED_YET]


async def test_a_disabled_endpoint_without_a_delivery_is_told_first(harness: Harness) -> None:
    endpoint = await created(harness)
    await harness.enable(endpoint.id, enabled=False)
    found = await asked(harness, webhook_id=endpoint.id)
    assert causes(found) == [FindingCause.ENDPOINT_DISABLED, FindingCause.NOTHING_HAPPENED]
    assert found.findings[0].sentence.startswith(NOTHING)


async def test_an_event_that_it_is_not_subscribed_to_is_why_nothing_was_sent(
    harness: Harness,
) -> None:
    endpoint = await created(harness, "project.ready")
    harness.clock.advance(1)
    [answer] = await harness.report(harness.milestone(await harness.project()))
    found = await asked(harness, webhook_id=endpoint.id)
    assert (found.event and found.event.id) == answer.event_id
    [finding] = found.findings
    assert (finding.cause, finding.webhook_id) == (FindingCause.NOT_SUBSCRIBED, endpoint.id)
    assert finding.sentence.startswith(f"{NOTHING} The endpoint ")


async def test_an_event_from_before_its_creation_came_too_early(harness: Harness) -> None:
    await harness.report(harness.milestone(await harness.project()))
    harness.clock.advance(1)
    endpoint = await created(harness)
    assert causes(await asked(harness, webhook_id=endpoint.id)) == [FindingCause.SUBSCRIBED_LATER]


async def test_a_project_that_does_not_notify_is_why_nothing_was_sent(harness: Harness) -> None:
    endpoint = await created(harness)
    await harness.report(harness.milestone(await harness.project(kind=ProjectKind.TRANSCRIPT)))
    [finding] = (await asked(harness, webhook_id=endpoint.id)).findings
    assert (finding.cause, finding.webhook_id) == (FindingCause.STANDALONE_TRANSCRIPT, endpoint.id)


async def test_closed_access_is_why_nothing_is_sent_to_any_endpoint(harness: Harness) -> None:
    endpoint = await created(harness)
    await send_test(harness, endpoint.id)
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    assert causes(await asked(harness, webhook_id=endpoint.id)) == [FindingCause.ACCESS_CLOSED]
