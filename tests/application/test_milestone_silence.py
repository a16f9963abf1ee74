"""Why a milestone notifies nobody, what is kept of it all the same, and what contradicts itself."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import FieldError
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import (
    Origin,
    ProcessingError,
    Project,
    ProjectKind,
    ProjectStatus,
    Stage,
)
from cuepost.ports.records import ReportAnswer
from tests.application.world import OPERATOR, World

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 10)
BROKEN = ProcessingError("broken_file", "The upload breaks off.")


async def reported(world: World, project: Project, status: str = "completed") -> ReportAnswer:
    [answer] = await world.report(world.milestone(project, status, report_id="r"))
    return answer


def silent(answer: ReportAnswer, reason: SilenceReason) -> ReportAnswer:
    return ReportAnswer("r", True, answer.event_id, False, reason)


async def test_a_standalone_transcript_notifies_nobody_and_the_event_says_why(
    world: World,
) -> None:
    await world.endpoint()
    project = await world.project(kind=ProjectKind.TRANSCRIPT)
    answer = await reported(world, project)
    assert answer == silent(answer, SilenceReason.STANDALONE_TRANSCRIPT)
    [event] = await world.events()
    assert (event.id, event.reason) == (answer.event_id, SilenceReason.STANDALONE_TRANSCRIPT)
    assert (await world.stored(project)).status is ProjectStatus.COMPLETED
    assert await world.deliveries() == []


@pytest.mark.parametrize("left", [timedelta(0), timedelta(seconds=-1)])
async def test_a_project_outside_its_access_window_notifies_nobody(
    world: World, left: timedelta
) -> None:
    await world.endpoint()
    project = await world.project(access_expires_at=world.clock.now() + left)
    answer = await reported(world, project)
    assert answer == silent(answer, SilenceReason.PROJECT_ACCESS_EXPIRED)
    assert [event.reason for event in await world.events()] == ["project_access_expired"]
    assert await world.deliveries() == []


async def test_inside_its_access_window_a_project_notifies(world: World) -> None:
    await world.endpoint()
    soon = world.clock.now() + timedelta(milliseconds=1)
    assert (await reported(world, await world.project(access_expires_at=soon))).notified


async def test_a_deleted_project_stays_as_it_is_and_makes_no_event(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    await world.do(world.service.projects.delete, world.owner, project.id)
    gone = await world.stored(project)
    assert await reported(world, project) == ReportAnswer(
        "r", True, None, False, SilenceReason.PROJECT_DELETED
    )
    assert await world.stored(project) == gone
    assert await world.events() == []


@pytest.mark.parametrize("status", ["processing", "exporting"])
async def test_a_status_without_an_event_moves_the_project_silently(
    world: World, status: str
) -> None:
    await world.endpoint("project.completed", "project.failed", "project.ready")
    project = await world.project(ProjectStatus.FAILED)
    assert await reported(world, project, status) == ReportAnswer(
        "r", True, None, False, SilenceReason.NO_EVENT_FOR_STATUS
    )
    assert (await world.stored(project)).status == status
    assert await world.events() == []


async def test_an_event_that_nobody_subscribed_to_is_kept_with_that_verdict(world: World) -> None:
    await world.endpoint("project.completed")
    answer = await reported(world, await world.project(ProjectStatus.PROCESSING), "ready")
    assert answer == silent(answer, SilenceReason.NOT_SUBSCRIBED)
    assert [event.reason for event in await world.events()] == ["not_subscribed"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_an_account_that_was_closed_is_not_notified_and_its_deliveries_say_why(
    world: World, enabled: bool
) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.endpoint("project.ready")
    await world.enable(endpoint.id, enabled)
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)
    answer = await reported(world, await world.project())
    assert answer == silent(answer, SilenceReason.ACCESS_CLOSED)
    [delivery] = await world.deliveries()
    assert (delivery.webhook_id, delivery.status, delivery.reason, delivery.finished_at) == (
        endpoint.id,
        DeliveryStatus.CANCELLED,
        CancelReason.ACCESS_CLOSED,
        world.clock.now(),
    )
    assert await world.queued() == set()


async def test_while_access_is_closed_an_event_nobody_subscribed_to_says_so(world: World) -> None:
    await world.endpoint("project.completed")
    await world.do(world.service.access.set_webhooks, OPERATOR, world.account.id, False)
    answer = await reported(world, await world.project(ProjectStatus.PROCESSING), "ready")
    assert answer == silent(answer, SilenceReason.NOT_SUBSCRIBED)
    assert await world.deliveries() == []


async def test_a_disabled_endpoint_gets_a_cancelled_record_at_once(world: World) -> None:
    endpoint = (await world.endpoint()).view.endpoint
    await world.enable(endpoint.id, False)
    answer = await reported(world, await world.project())
    assert answer == silent(answer, SilenceReason.ENDPOINT_DISABLED)
    [delivery] = await world.deliveries()
    assert (delivery.status, delivery.reason) == (
        DeliveryStatus.CANCELLED,
        CancelReason.ENDPOINT_DISABLED,
    )
    assert delivery.finished_at == world.clock.now()
    assert await world.queued() == set()


async def test_one_enabled_endpoint_beside_a_disabled_one_is_notified(world: World) -> None:
    disabled, enabled = await world.endpoint(), await world.endpoint()
    await world.enable(disabled.view.endpoint.id, False)
    assert (await reported(world, await world.project())).reason is None
    assert {each.webhook_id: each.status for each in await world.deliveries()} == {
        disabled.view.endpoint.id: DeliveryStatus.CANCELLED,
        enabled.view.endpoint.id: DeliveryStatus.PENDING,
    }


@pytest.mark.parametrize("origin", Origin)
async def test_projects_of_every_origin_notify(world: World, origin: Origin) -> None:
    await world.endpoint()
    assert (await reported(world, await world.project(origin=origin))).notified


async def test_the_files_of_a_new_export_replace_the_old_ones(world: World) -> None:
    project = await world.project()
    other = await world.project()
    await world.report(
        world.milestone(project, artifacts=(VIDEO, CAPTIONS)),
        world.milestone(other, artifacts=(VIDEO,)),
    )
    assert await files(world, project) == [VIDEO, CAPTIONS]
    again = replace(VIDEO, key="a/2.mp4")
    await world.report(
        world.milestone(project, "exporting"), world.milestone(project, artifacts=(again,))
    )
    assert (await files(world, project), await files(world, other)) == ([again], [VIDEO])
    await world.report(world.milestone(project, "exporting"), world.milestone(project))
    assert await files(world, project) == [again]
    none = world.milestone(project, artifacts=())
    await world.report(world.milestone(project, "exporting"), none)
    assert (await files(world, project), await files(world, other)) == ([], [VIDEO])


async def files(world: World, project: Project) -> list[Artifact]:
    return await world.see(lambda t: t.projects.artifacts(project.account_id, project.id))


async def test_reports_that_contradict_themselves_are_named_and_store_nothing(
    world: World,
) -> None:
    project = await world.project()
    before = await world.dump()
    refused = await world.report(
        world.milestone(project, report_id="a", stage=Stage.PROCESSING, error=BROKEN),
        world.milestone(project, "failed", report_id="b", artifacts=(VIDEO,)),
    )
    assert refused == [
        invalid(
            "a",
            FieldError("stage", "stage_mismatch", "The stage of status completed is export."),
            FieldError("error", "error_not_expected", "Only a failed milestone has an error."),
        ),
        invalid(
            "b",
            FieldError(
                "artifacts", "artifacts_not_expected", "Only a completed milestone has artifacts."
            ),
        ),
    ]
    assert await world.dump() == before


async def test_a_report_that_contradicts_itself_holds_up_no_other(world: World) -> None:
    await world.endpoint("project.failed")
    projects = [await world.project(), await world.project(), await world.project()]
    answers = await world.report(
        world.milestone(projects[0], "failed", stage=Stage.PROCESSING, error=BROKEN),
        world.milestone(projects[1], "completed", error=BROKEN),
        world.milestone(projects[2], "failed"),
    )
    assert [answer.notified for answer in answers] == [True, False, True]
    assert {each.project_id for each in await world.deliveries()} == {
        projects[0].id,
        projects[2].id,
    }


def invalid(report_id: str, *errors: FieldError) -> ReportAnswer:
    return ReportAnswer(report_id, False, None, False, SilenceReason.INVALID, errors)
