"""What an explanation is about: the newest export, or what the question names."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.explain_delivery import Diagnosis, Question
from cuepost.application.finding import Cause
from cuepost.domain.access import Scope
from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.errors import MissingScope, NotFound
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import ProcessingError, ProjectKind, ProjectStatus
from tests.application.world import OPERATOR, World
from tests.doors.rest.client import attempt_of
from tests.support.records import Records

NOWHERE = UUID("0198c0de-0000-7000-8000-000000000000")


async def asked(world: World, **about: object) -> Diagnosis:
    question = Question(**about)  # type: ignore[arg-type]  # named by the test
    return await world.see(world.service.explain.explain, world.owner, question)


def causes(diagnosis: Diagnosis) -> list[Cause]:
    return [finding.cause for finding in diagnosis.findings]


async def arrived(world: World) -> UUID:
    """An export that every endpoint took; its event."""
    [answer] = await world.report(world.milestone(await world.project()))
    for delivery in await world.deliveries(event_id=answer.event_id):
        await world.end(delivery, DeliveryStatus.DELIVERED)
    assert answer.event_id is not None
    world.clock.advance(1)
    return answer.event_id


async def test_the_newest_export_is_meant_unless_another_is_named(world: World) -> None:
    await world.endpoint()
    older = await arrived(world)
    [answer] = await world.report(world.milestone(await world.project()))
    newest = await asked(world)
    assert (newest.event and newest.event.id, causes(newest)) == (
        answer.event_id,
        [Cause.NOT_SENT_YET],
    )
    named = await asked(world, event_id=older)
    assert (named.event and named.event.id, causes(named)) == (older, [Cause.DELIVERED])
    assert named.arrived
    assert named.project is not None
    of_project = await asked(world, project_id=named.project.id)
    assert of_project == named


async def test_where_the_newest_arrived_an_unfinished_project_must_be_meant(world: World) -> None:
    await world.endpoint()
    await arrived(world)
    project = await world.project(ProjectStatus.PROCESSING)
    found = await asked(world)
    assert causes(found) == [Cause.NOT_EXPORTED_YET, Cause.DELIVERED]
    assert str(project.id) in found.findings[0].sentence
    assert found.findings[0].fix == "Wait until it is completed."


async def test_where_the_newest_did_not_arrive_an_unfinished_project_comes_second(
    world: World,
) -> None:
    await world.endpoint()
    await world.complete()
    world.clock.advance(1)
    await world.project(ProjectStatus.READY)
    found = await asked(world)
    assert causes(found) == [Cause.NOT_SENT_YET, Cause.NOT_EXPORTED_YET]
    assert found.findings[1].fix == "Start its export."


async def test_each_endpoint_has_its_own_finding(world: World) -> None:
    one = (await world.endpoint()).view.endpoint
    other = (await world.endpoint(url="https://hooks.example.net/")).view.endpoint
    quiet = (await world.endpoint("project.ready", url="https://hooks.example.org/")).view.endpoint
    await world.report(world.milestone(await world.project()))
    [delivery] = await world.deliveries(webhook_id=other.id)
    await world.end(delivery, DeliveryStatus.DELIVERED)
    found = {finding.webhook_id: finding.cause for finding in (await asked(world)).findings}
    assert found == {one.id: Cause.NOT_SENT_YET, other.id: Cause.DELIVERED}
    assert causes(await asked(world, webhook_id=other.id)) == [Cause.DELIVERED]
    assert causes(await asked(world, webhook_id=quiet.id)) == [Cause.NOT_SUBSCRIBED]


async def test_a_type_can_be_named(world: World) -> None:
    await world.endpoint("project.ready")
    await world.report(world.milestone(await world.project(ProjectStatus.PROCESSING), "ready"))
    assert causes(await asked(world, event_type="project.ready")) == [
        Cause.NOT_EXPORTED_YET,
        Cause.NOT_SENT_YET,
    ]
    assert causes(await asked(world, event_type="project.completed")) == [Cause.NOTHING_HAPPENED]


async def test_a_test_event_can_be_named(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    sent = await world.do(world.service.webhooks.send_test, world.owner, endpoint.id)
    found = await asked(world, event_id=sent.event_id)
    assert (found.project, causes(found)) == (None, [Cause.NOT_SENT_YET])


async def test_a_deleted_project_says_so_although_nothing_was_reported(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    await world.do(world.service.projects.delete, world.owner, project.id)
    assert causes(await asked(world, project_id=project.id)) == [Cause.PROJECT_DELETED]


@pytest.mark.parametrize(
    ("status", "kind", "cause"),
    [
        (ProjectStatus.QUEUED, ProjectKind.TRANSCRIPT, Cause.STANDALONE_TRANSCRIPT),
        (ProjectStatus.COMPLETED, ProjectKind.VIDEO, Cause.HISTORY_GONE),
        (ProjectStatus.QUEUED, ProjectKind.VIDEO, Cause.NOT_EXPORTED_YET),
    ],
)
async def test_a_project_without_an_event_is_judged_by_itself(
    world: World, status: ProjectStatus, kind: ProjectKind, cause: Cause
) -> None:
    await world.endpoint()
    project = await world.project(status, kind=kind)
    assert causes(await asked(world, project_id=project.id)) == [cause]


async def test_without_an_endpoint_that_is_said_whatever_else_there_is(world: World) -> None:
    assert causes(await asked(world)) == [Cause.NO_ENDPOINT]
    await world.project(ProjectStatus.READY)
    assert causes(await asked(world)) == [Cause.NO_ENDPOINT, Cause.NOT_EXPORTED_YET]


async def test_a_failed_export_tells_what_the_pipeline_said(world: World) -> None:
    await world.endpoint()
    error = ProcessingError("render_timeout", "The renderer ran out of time.")
    await world.report(world.milestone(await world.project(), "failed", error=error))
    found = await asked(world)
    assert causes(found) == [Cause.EXPORT_FAILED, Cause.NOT_SENT_YET]
    assert "render_timeout: The renderer ran out of time." in found.findings[0].sentence


async def test_a_cancelled_export_is_to_be_started_again(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    await world.do(world.service.projects.cancel, world.owner, project.id)
    finding = (await asked(world)).findings[0]
    assert (finding.cause, finding.fix) == (Cause.PROJECT_CANCELLED, "Export the project again.")


async def test_what_waits_after_a_retry_by_hand_is_not_blamed_on_the_attempt_before(
    world: World,
) -> None:
    await world.endpoint()
    delivery = await world.complete()
    failed = attempt_of(delivery, outcome=Outcome.TLS_ERROR)
    await world.do(lambda transaction: transaction.attempts.add([failed]))
    await world.count_attempts(delivery, 1)
    await world.end(delivery, DeliveryStatus.FAILED)
    assert causes(await asked(world)) == [Cause.TLS_ERROR]
    await world.do(world.service.redeliver.one, world.owner, delivery.webhook_id, delivery.id)
    assert causes(await asked(world)) == [Cause.NOT_SENT_YET]


async def test_an_endpoint_that_was_enabled_again_can_be_sent_to(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.enable(endpoint.id, enabled=False)
    await world.report(world.milestone(await world.project()))
    await world.enable(endpoint.id, enabled=True)
    [finding] = (await asked(world)).findings
    assert (finding.cause, finding.fix) == (Cause.ENDPOINT_DISABLED, "Send the delivery again.")


@pytest.mark.parametrize("enabled", [True, False])
async def test_what_was_held_back_while_access_was_closed_can_be_sent_now(
    world: World, enabled: bool
) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.enable(endpoint.id, enabled)
    set_access = world.service.access.set_webhooks
    await world.do(set_access, OPERATOR, world.account.id, False)
    delivery = await world.complete()
    await world.do(set_access, OPERATOR, world.account.id, True)
    [finding] = (await asked(world)).findings
    assert (finding.cause, finding.delivery) == (Cause.ACCESS_WAS_CLOSED, delivery)
    begin = "Send the delivery" if enabled else "Enable the endpoint, then send the delivery"
    assert finding.fix == f"{begin} again, alone or with a bulk retry."


async def test_an_event_from_before_closed_access_was_recorded_is_explained_too(
    world: World,
) -> None:
    await world.endpoint()
    world.clock.advance(1)
    records = Records(world.clock, world.ids)
    event = records.event(world.account.id, project_id=None, reason=SilenceReason.NOT_SUBSCRIBED)
    await world.do(lambda transaction: transaction.events.add([event]))
    assert causes(await asked(world)) == [Cause.ACCESS_WAS_CLOSED]


async def test_of_a_deleted_endpoint_nothing_is_left_to_tell(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.report(world.milestone(await world.project()))
    await world.do(world.service.webhooks.delete, world.owner, endpoint.id)
    assert causes(await asked(world)) == [Cause.NO_ENDPOINT]


@pytest.mark.parametrize("named", ["project_id", "event_id", "webhook_id"])
async def test_what_is_named_and_does_not_exist_is_not_found(world: World, named: str) -> None:
    with pytest.raises(NotFound):
        await asked(world, **{named: NOWHERE})


async def test_things_of_another_account_do_not_exist(world: World) -> None:
    stranger = await world.new_owner()
    theirs = (await world.endpoint(caller=stranger)).view.endpoint
    project = await world.project(caller=stranger)
    for about in ({"webhook_id": theirs.id}, {"project_id": project.id}):
        with pytest.raises(NotFound):
            await asked(world, **about)
    assert causes(await asked(world)) == [Cause.NO_ENDPOINT]


async def test_asking_needs_a_scope_but_no_open_access(world: World) -> None:
    closed = await world.new_owner(webhooks_enabled=False)
    found = await world.see(world.service.explain.explain, closed, Question())
    assert causes(found) == [Cause.ACCESS_CLOSED]
    without = replace(world.owner, scopes=frozenset({Scope.PROJECTS_READ}))
    with pytest.raises(MissingScope):
        await world.see(world.service.explain.explain, without, Question())


async def test_an_expired_window_is_a_cause_only_of_what_did_not_arrive(world: World) -> None:
    await world.endpoint()
    ends = world.clock.now() + timedelta(seconds=10)
    project = await world.project(access_expires_at=ends)
    await world.report(world.milestone(project))
    world.clock.advance(60)
    waiting = await asked(world)
    assert causes(waiting) == [Cause.PROJECT_ACCESS_EXPIRED, Cause.NOT_SENT_YET]
