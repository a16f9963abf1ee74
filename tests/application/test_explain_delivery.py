"""What an explanation is about: the newest export, or what the question names."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.explain_delivery import Diagnosis, Question
from cuepost.application.finding import FindingCause
from cuepost.domain.access import Scope
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import MissingScope, NotFound
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProcessingError, ProjectKind, ProjectStatus
from tests.application.harness import OPERATOR, Harness
from tests.interfaces.rest.client import attempt_of
from tests.support.records import Records

NOWHERE = UUID("0198c0de-0000-7000-8000-000000000000")


async def asked(harness: Harness, **about: object) -> Diagnosis:
    question = Question(**about)  # type: ignore[arg-type]  # named by the test
    return await harness.see(harness.service.explain.explain, harness.owner, question)


def causes(diagnosis: Diagnosis) -> list[FindingCause]:
    return [finding.cause for finding in diagnosis.findings]


async def arrived(harness: Harness) -> UUID:
    """An export that every endpoint took; its event."""
    [answer] = await harness.report(harness.milestone(await harness.project()))
    for delivery in await harness.deliveries(event_id=answer.event_id):
        await harness.end(delivery, DeliveryStatus.DELIVERED)
    assert answer.event_id is not None
    harness.clock.advance(1)
    return answer.event_id


async def test_the_newest_export_is_meant_unless_another_is_named(harness: Harness) -> None:
    await harness.endpoint()
    older = await arrived(harness)
    [answer] = await harness.report(harness.milestone(await harness.project()))
    newest = await asked(harness)
    assert (newest.event and newest.event.id, causes(newest)) == (
        answer.event_id,
        [FindingCause.NOT_SENT_YET],
    )
    named = await asked(harness, event_id=older)
    assert (named.event and named.event.id, causes(named)) == (older, [FindingCause.DELIVERED])
    assert named.arrived
    assert named.project is not None
    of_project = await asked(harness, project_id=named.project.id)
    assert of_project == named


async def test_where_the_newest_arrived_an_unfinished_project_must_be_meant(
    harness: Harness,
) -> None:
    await harness.endpoint()
    await arrived(harness)
    project = await harness.project(ProjectStatus.PROCESSING)
    found = await asked(harness)
    assert causes(found) == [FindingCause.NOT_EXPORTED_YET, FindingCause.DELIVERED]
    assert str(project.id) in found.findings[0].sentence
    assert found.findings[0].fix == "Wait until it is completed."


async def test_where_the_newest_did_not_arrive_an_unfinished_project_comes_second(
    harness: Harness,
) -> None:
    await harness.endpoint()
    await harness.complete()
    harness.clock.advance(1)
    await harness.project(ProjectStatus.READY)
    found = await asked(harness)
    assert causes(found) == [FindingCause.NOT_SENT_YET, FindingCause.NOT_EXPORTED_YET]
    assert found.findings[1].fix == "Start its export."


async def test_each_endpoint_has_its_own_finding(harness: Harness) -> None:
    one = (await harness.endpoint()).view.endpoint
    other = (await harness.endpoint(url="https://hooks.example.net/")).view.endpoint
    quiet = (
        await harness.endpoint("project.ready", url="https://hooks.example.org/")
    ).view.endpoint
    await harness.report(harness.milestone(await harness.project()))
    [delivery] = await harness.deliveries(webhook_id=other.id)
    await harness.end(delivery, DeliveryStatus.DELIVERED)
    found = {finding.webhook_id: finding.cause for finding in (await asked(harness)).findings}
    assert found == {one.id: FindingCause.NOT_SENT_YET, other.id: FindingCause.DELIVERED}
    assert causes(await asked(harness, webhook_id=other.id)) == [FindingCause.DELIVERED]
    assert causes(await asked(harness, webhook_id=quiet.id)) == [FindingCause.NOT_SUBSCRIBED]


async def test_a_type_can_be_named(harness: Harness) -> None:
    await harness.endpoint("project.ready")
    await harness.report(
        harness.milestone(await harness.project(ProjectStatus.PROCESSING), "ready")
    )
    assert causes(await asked(harness, event_type="project.ready")) == [
        FindingCause.NOT_EXPORTED_YET,
        FindingCause.NOT_SENT_YET,
    ]
    assert causes(await asked(harness, event_type="project.completed")) == [
        FindingCause.NOTHING_HAPPENED
    ]


async def test_a_test_event_can_be_named(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    sent = await harness.do(harness.service.webhooks.send_test, harness.owner, endpoint.id)
    found = await asked(harness, event_id=sent.event_id)
    assert (found.project, causes(found)) == (None, [FindingCause.NOT_SENT_YET])


async def test_a_deleted_project_says_so_although_nothing_was_reported(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project()
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    assert causes(await asked(harness, project_id=project.id)) == [FindingCause.PROJECT_DELETED]


@pytest.mark.parametrize(
    ("status", "kind", "cause"),
    [
        (ProjectStatus.QUEUED, ProjectKind.TRANSCRIPT, FindingCause.STANDALONE_TRANSCRIPT),
        (ProjectStatus.COMPLETED, ProjectKind.VIDEO, FindingCause.HISTORY_GONE),
        (ProjectStatus.QUEUED, ProjectKind.VIDEO, FindingCause.NOT_EXPORTED_YET),
    ],
)
async def test_a_project_without_an_event_is_judged_by_itself(
    harness: Harness, status: ProjectStatus, kind: ProjectKind, cause: FindingCause
) -> None:
    await harness.endpoint()
    project = await harness.project(status, kind=kind)
    assert causes(await asked(harness, project_id=project.id)) == [cause]


async def test_without_an_endpoint_that_is_said_whatever_else_there_is(harness: Harness) -> None:
    assert causes(await asked(harness)) == [FindingCause.NO_ENDPOINT]
    await harness.project(ProjectStatus.READY)
    assert causes(await asked(harness)) == [FindingCause.NO_ENDPOINT, FindingCause.NOT_EXPORTED_YET]


async def test_a_failed_export_tells_what_the_pipeline_said(harness: Harness) -> None:
    await harness.endpoint()
    error = ProcessingError("render_timeout", "The renderer ran out of time.")
    await harness.report(harness.milestone(await harness.project(), "failed", error=error))
    found = await asked(harness)
    assert causes(found) == [FindingCause.EXPORT_FAILED, FindingCause.NOT_SENT_YET]
    assert "render_timeout: The renderer ran out of time." in found.findings[0].sentence


async def test_a_cancelled_export_is_to_be_started_again(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project()
    await harness.do(harness.service.projects.cancel, harness.owner, project.id)
    finding = (await asked(harness)).findings[0]
    assert (finding.cause, finding.fix) == (
        FindingCause.PROJECT_CANCELLED,
        "Export the project again.",
    )


async def test_what_waits_after_a_retry_by_hand_is_not_blamed_on_the_attempt_before(
    harness: Harness,
) -> None:
    await harness.endpoint()
    delivery = await harness.complete()
    failed = attempt_of(delivery, outcome=Outcome.TLS_ERROR)
    await harness.do(lambda transaction: transaction.attempts.add([failed]))
    await harness.count_attempts(delivery, 1)
    await harness.end(delivery, DeliveryStatus.FAILED)
    assert causes(await asked(harness)) == [FindingCause.TLS_ERROR]
    await harness.do(harness.service.redeliver.one, harness.owner, delivery.webhook_id, delivery.id)
    assert causes(await asked(harness)) == [FindingCause.NOT_SENT_YET]


async def test_an_endpoint_that_was_enabled_again_can_be_sent_to(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.enable(endpoint.id, enabled=False)
    await harness.report(harness.milestone(await harness.project()))
    await harness.enable(endpoint.id, enabled=True)
    [finding] = (await asked(harness)).findings
    assert (finding.cause, finding.fix) == (
        FindingCause.ENDPOINT_DISABLED,
        "Send the delivery again.",
    )


@pytest.mark.parametrize("enabled", [True, False])
async def test_what_was_held_back_while_access_was_closed_can_be_sent_now(
    harness: Harness, enabled: bool
) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.enable(endpoint.id, enabled)
    set_access = harness.service.access.set_webhooks
    await harness.do(set_access, OPERATOR, harness.account.id, False)
    delivery = await harness.complete()
    await harness.do(set_access, OPERATOR, harness.account.id, True)
    [finding] = (await asked(harness)).findings
    assert (finding.cause, finding.delivery) == (FindingCause.ACCESS_WAS_CLOSED, delivery)
    begin = "Send the delivery" if enabled else "Enable the endpoint, then send the delivery"
    assert finding.fix == f"{begin} again, alone or with a bulk retry."


async def test_an_event_from_before_closed_access_was_recorded_is_explained_too(
    harness: Harness,
) -> None:
    await harness.endpoint()
    harness.clock.advance(1)
    records = Records(harness.clock, harness.ids)
    event = records.event(harness.account.id, project_id=None, reason=SilenceReason.NOT_SUBSCRIBED)
    await harness.do(lambda transaction: transaction.events.add([event]))
    assert causes(await asked(harness)) == [FindingCause.ACCESS_WAS_CLOSED]


async def test_of_a_deleted_endpoint_nothing_is_left_to_tell(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.report(harness.milestone(await harness.project()))
    await harness.do(harness.service.webhooks.delete, harness.owner, endpoint.id)
    assert causes(await asked(harness)) == [FindingCause.NO_ENDPOINT]


@pytest.mark.parametrize("named", ["project_id", "event_id", "webhook_id"])
async def test_what_is_named_and_does_not_exist_is_not_found(harness: Harness, named: str) -> None:
    with pytest.raises(NotFound):
        await asked(harness, **{named: NOWHERE})


async def test_things_of_another_account_do_not_exist(harness: Harness) -> None:
    stranger = await harness.new_owner()
    theirs = (await harness.endpoint(caller=stranger)).view.endpoint
    project = await harness.project(caller=stranger)
    for about in ({"webhook_id": theirs.id}, {"project_id": project.id}):
        with pytest.raises(NotFound):
            await asked(harness, **about)
    assert causes(await asked(harness)) == [FindingCause.NO_ENDPOINT]


async def test_asking_needs_a_scope_but_no_open_access(harness: Harness) -> None:
    closed = await harness.new_owner(webhooks_enabled=False)
    found = await harness.see(harness.service.explain.explain, closed, Question())
    assert causes(found) == [FindingCause.ACCESS_CLOSED]
    without = replace(harness.owner, scopes=frozenset({Scope.PROJECTS_READ}))
    with pytest.raises(MissingScope):
        await harness.see(harness.service.explain.explain, without, Question())


async def test_an_expired_window_is_a_cause_only_of_what_did_not_arrive(harness: Harness) -> None:
    await harness.endpoint()
    ends = harness.clock.now() + timedelta(seconds=10)
    project = await harness.project(access_expires_at=ends)
    await harness.report(harness.milestone(project))
    harness.clock.advance(60)
    waiting = await asked(harness)
    assert causes(waiting) == [FindingCause.PROJECT_ACCESS_EXPIRED, FindingCause.NOT_SENT_YET]
