"""Why a milestone notifies no one, what is kept of it all the same, and what contradicts itself."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.milestone_batch import Milestone, contradictions_of
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
from tests.application.harness import OPERATOR, Harness

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 10)
BROKEN = ProcessingError("broken_file", "The upload breaks off.")


async def reported(harness: Harness, project: Project, status: str = "completed") -> ReportAnswer:
    [answer] = await harness.report(harness.milestone(project, status, report_id="r"))
    return answer


def silent(answer: ReportAnswer, reason: SilenceReason) -> ReportAnswer:
    return ReportAnswer("r", True, answer.event_id, False, reason)


async def test_a_standalone_transcript_sends_nothing_and_the_event_says_why(
    harness: Harness,
) -> None:
    await harness.endpoint()
    project = await harness.project(kind=ProjectKind.TRANSCRIPT)
    answer = await reported(harness, project)
    assert answer == silent(answer, SilenceReason.STANDALONE_TRANSCRIPT)
    [event] = await harness.events()
    assert (event.id, event.reason) == (answer.event_id, SilenceReason.STANDALONE_TRANSCRIPT)
    assert (await harness.stored(project)).status is ProjectStatus.COMPLETED
    assert await harness.deliveries() == []


@pytest.mark.parametrize("left", [timedelta(0), timedelta(seconds=-1)])
async def test_a_project_outside_its_access_window_sends_nothing(
    harness: Harness, left: timedelta
) -> None:
    await harness.endpoint()
    project = await harness.project(access_expires_at=harness.clock.now() + left)
    answer = await reported(harness, project)
    assert answer == silent(answer, SilenceReason.PROJECT_ACCESS_EXPIRED)
    assert [event.reason for event in await harness.events()] == ["project_access_expired"]
    assert await harness.deliveries() == []


async def test_inside_its_access_window_a_project_notifies(harness: Harness) -> None:
    await harness.endpoint()
    soon = harness.clock.now() + timedelta(milliseconds=1)
    assert (await reported(harness, await harness.project(access_expires_at=soon))).notified


async def test_a_deleted_project_stays_as_it_is_and_makes_no_event(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project()
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    gone = await harness.stored(project)
    assert await reported(harness, project) == ReportAnswer(
        "r", True, None, False, SilenceReason.PROJECT_DELETED
    )
    assert await harness.stored(project) == gone
    assert await harness.events() == []


@pytest.mark.parametrize("status", ["processing", "exporting"])
async def test_a_status_without_an_event_moves_the_project_silently(
    harness: Harness, status: str
) -> None:
    await harness.endpoint("project.completed", "project.failed", "project.ready")
    project = await harness.project(ProjectStatus.FAILED)
    assert await reported(harness, project, status) == ReportAnswer(
        "r", True, None, False, SilenceReason.NO_EVENT_FOR_STATUS
    )
    assert (await harness.stored(project)).status == status
    assert await harness.events() == []


async def test_an_event_without_a_subscriber_is_kept_with_that_verdict(
    harness: Harness,
) -> None:
    await harness.endpoint("project.completed")
    answer = await reported(harness, await harness.project(ProjectStatus.PROCESSING), "ready")
    assert answer == silent(answer, SilenceReason.NOT_SUBSCRIBED)
    assert [event.reason for event in await harness.events()] == ["not_subscribed"]


@pytest.mark.parametrize("enabled", [True, False])
async def test_an_account_that_was_closed_is_not_notified_and_its_deliveries_say_why(
    harness: Harness, enabled: bool
) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.endpoint("project.ready")
    await harness.enable(endpoint.id, enabled)
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    answer = await reported(harness, await harness.project())
    assert answer == silent(answer, SilenceReason.ACCESS_CLOSED)
    [delivery] = await harness.deliveries()
    assert (delivery.webhook_id, delivery.status, delivery.reason, delivery.finished_at) == (
        endpoint.id,
        DeliveryStatus.CANCELLED,
        CancelReason.ACCESS_CLOSED,
        harness.clock.now(),
    )
    assert await harness.queued() == set()


async def test_while_access_is_closed_an_event_without_a_subscriber_says_so(
    harness: Harness,
) -> None:
    await harness.endpoint("project.completed")
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    answer = await reported(harness, await harness.project(ProjectStatus.PROCESSING), "ready")
    assert answer == silent(answer, SilenceReason.NOT_SUBSCRIBED)
    assert await harness.deliveries() == []


async def test_a_disabled_endpoint_gets_a_cancelled_record_at_once(harness: Harness) -> None:
    endpoint = (await harness.endpoint()).view.endpoint
    await harness.enable(endpoint.id, False)
    answer = await reported(harness, await harness.project())
    assert answer == silent(answer, SilenceReason.ENDPOINT_DISABLED)
    [delivery] = await harness.deliveries()
    assert (delivery.status, delivery.reason) == (
        DeliveryStatus.CANCELLED,
        CancelReason.ENDPOINT_DISABLED,
    )
    assert delivery.finished_at == harness.clock.now()
    assert await harness.queued() == set()


async def test_one_enabled_endpoint_beside_a_disabled_one_is_notified(harness: Harness) -> None:
    disabled, enabled = await harness.endpoint(), await harness.endpoint()
    await harness.enable(disabled.view.endpoint.id, False)
    assert (await reported(harness, await harness.project())).reason is None
    assert {each.webhook_id: each.status for each in await harness.deliveries()} == {
        disabled.view.endpoint.id: DeliveryStatus.CANCELLED,
        enabled.view.endpoint.id: DeliveryStatus.PENDING,
    }


@pytest.mark.parametrize("origin", Origin)
async def test_projects_of_every_origin_notify(harness: Harness, origin: Origin) -> None:
    await harness.endpoint()
    assert (await reported(harness, await harness.project(origin=origin))).notified


async def test_the_files_of_a_new_export_replace_the_old_ones(harness: Harness) -> None:
    project = await harness.project()
    other = await harness.project()
    await harness.report(
        harness.milestone(project, artifacts=(VIDEO, CAPTIONS)),
        harness.milestone(other, artifacts=(VIDEO,)),
    )
    assert await files(harness, project) == [VIDEO, CAPTIONS]
    again = replace(VIDEO, key="a/2.mp4")
    await harness.report(
        harness.milestone(project, "exporting"), harness.milestone(project, artifacts=(again,))
    )
    assert (await files(harness, project), await files(harness, other)) == ([again], [VIDEO])
    await harness.report(harness.milestone(project, "exporting"), harness.milestone(project))
    assert await files(harness, project) == [again]
    none = harness.milestone(project, artifacts=())
    await harness.report(harness.milestone(project, "exporting"), none)
    assert (await files(harness, project), await files(harness, other)) == ([], [VIDEO])


async def files(harness: Harness, project: Project) -> list[Artifact]:
    return await harness.see(lambda t: t.projects.artifacts(project.account_id, project.id))


async def test_reports_that_contradict_themselves_are_named_and_store_nothing(
    harness: Harness,
) -> None:
    project = await harness.project()
    before = await harness.dump()
    refused = await harness.report(
        harness.milestone(project, report_id="a", stage=Stage.PROCESSING, error=BROKEN),
        harness.milestone(project, "failed", report_id="b", artifacts=(VIDEO,)),
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
    assert await harness.dump() == before


@pytest.mark.parametrize(
    ("status", "stage"),
    [
        ("queued", "processing"),
        ("processing", "processing"),
        ("ready", "processing"),
        ("exporting", "export"),
        ("completed", "export"),
    ],
)
def test_a_status_with_a_fixed_stage_accepts_that_stage_alone(status: str, stage: str) -> None:
    reported = Milestone("report", UUID(int=1), ProjectStatus(status), Stage(stage))
    assert contradictions_of(reported) == []
    wrong = next(each for each in Stage if each != stage)
    assert contradictions_of(replace(reported, stage=wrong)) == [
        FieldError("stage", "stage_mismatch", f"The stage of status {status} is {stage}.")
    ]


async def test_a_report_that_contradicts_itself_holds_up_no_other(harness: Harness) -> None:
    await harness.endpoint("project.failed")
    projects = [await harness.project(), await harness.project(), await harness.project()]
    answers = await harness.report(
        harness.milestone(projects[0], "failed", stage=Stage.PROCESSING, error=BROKEN),
        harness.milestone(projects[1], "completed", error=BROKEN),
        harness.milestone(projects[2], "failed"),
    )
    assert [answer.notified for answer in answers] == [True, False, True]
    assert {each.project_id for each in await harness.deliveries()} == {
        projects[0].id,
        projects[2].id,
    }


def invalid(report_id: str, *errors: FieldError) -> ReportAnswer:
    return ReportAnswer(report_id, False, None, False, SilenceReason.INVALID, errors)
