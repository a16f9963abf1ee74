"""Projects as their owner sees them: created, looked at, changed, exported, cancelled, deleted."""

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import Artifact
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.errors import (
    IllegalTransition,
    Invalid,
    MissingScope,
    NotFound,
    ProjectDeleted,
)
from cuepost.domain.event import SilenceReason
from cuepost.domain.project import (
    Origin,
    Project,
    ProjectKind,
    ProjectStatus,
    Stage,
)
from cuepost.ports.records import Page
from tests.application.harness import EVERYTHING, Harness

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)


async def create(harness: Harness, caller: Caller | None = None, **changed: object) -> Project:
    wanted: dict[str, object] = {
        "name": "Trailer",
        "kind": ProjectKind.VIDEO,
        "origin": Origin.API,
        "access_expires_at": None,
    }
    return await harness.do(
        harness.service.projects.create,
        caller or harness.owner,
        **(wanted | changed),  # type: ignore[arg-type]  # named by the test
    )


async def change(harness: Harness, project: Project, wanted: ProjectChange) -> Project:
    return await harness.do(harness.service.projects.change, harness.owner, project.id, wanted)


@pytest.mark.parametrize("origin", Origin)
async def test_a_new_project_is_queued_and_found_again(harness: Harness, origin: Origin) -> None:
    end = harness.clock.now() + timedelta(days=7)
    made = await create(harness, name="Teaser", origin=origin, access_expires_at=end)
    assert made == Project(
        account_id=harness.account.id,
        id=made.id,
        name="Teaser",
        kind=ProjectKind.VIDEO,
        origin=origin,
        status=ProjectStatus.QUEUED,
        stage=Stage.PROCESSING,
        access_expires_at=end,
        created_at=harness.clock.now(),
        updated_at=harness.clock.now(),
    )
    assert await harness.see(harness.service.projects.get, harness.owner, made.id) == made


async def test_a_project_is_not_created_with_access_that_has_expired(harness: Harness) -> None:
    before = await harness.dump()
    with pytest.raises(Invalid) as refused:
        await create(harness, access_expires_at=harness.clock.now())
    assert [error.code for error in refused.value.errors] == ["expiry_in_the_past"]
    assert await harness.dump() == before


async def test_projects_are_listed_newest_first_page_by_page(harness: Harness) -> None:
    first, second, third = [await create(harness) for _ in range(3)]
    await harness.do(harness.service.projects.delete, harness.owner, second.id)
    await create(harness, await harness.new_owner())
    everything = await harness.see(harness.service.projects.page, harness.owner, EVERYTHING)
    assert everything == [third, first]
    behind = Page(limit=1, before=third.id)
    assert await harness.see(harness.service.projects.page, harness.owner, behind) == [first]


async def test_name_and_access_window_can_be_changed_apart(harness: Harness) -> None:
    end = harness.clock.now() + timedelta(days=1)
    made = await create(harness, access_expires_at=end)
    harness.clock.advance(1)
    renamed = await change(harness, made, ProjectChange(name="Teaser"))
    assert renamed == replace(made, name="Teaser", updated_at=harness.clock.now())
    endless = await change(harness, made, ProjectChange(sets_access=True, access_expires_at=None))
    assert endless == replace(renamed, access_expires_at=None)
    assert await harness.stored(made) == endless


async def test_a_window_set_to_the_past_stops_what_is_pending(harness: Harness) -> None:
    await harness.endpoint()
    project, other = await harness.project(), await harness.project()
    pending, untouched = await harness.complete(project), await harness.complete(other)
    ended = harness.clock.now() - timedelta(days=1)
    await change(harness, project, ProjectChange(sets_access=True, access_expires_at=ended))
    assert await harness.deliveries() == [
        untouched,
        replace(
            pending,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.PROJECT_ACCESS_EXPIRED,
            next_attempt_at=None,
            finished_at=harness.clock.now(),
        ),
    ]
    assert await harness.queued() == {untouched.id}


async def test_a_window_set_to_the_future_stops_nothing(harness: Harness) -> None:
    await harness.endpoint()
    project = await harness.project()
    pending = await harness.complete(project)
    soon = harness.clock.now() + timedelta(milliseconds=1)
    await change(harness, project, ProjectChange(sets_access=True, access_expires_at=soon))
    assert await harness.deliveries() == [pending]


async def test_an_export_moves_the_project_silently(harness: Harness) -> None:
    await harness.endpoint("project.completed", "project.ready", "project.cancelled")
    project = await harness.project(ProjectStatus.READY)
    exporting = await harness.do(harness.service.projects.export, harness.owner, project.id)
    assert exporting == replace(project, status=ProjectStatus.EXPORTING, stage=Stage.EXPORT)
    assert await harness.stored(project) == exporting
    assert await harness.events() == []


@pytest.mark.parametrize(
    "status",
    [
        ProjectStatus.PROCESSING,
        ProjectStatus.COMPLETED,
        ProjectStatus.FAILED,
        ProjectStatus.CANCELLED,
    ],
)
async def test_a_project_is_exported_again_after_every_end(
    harness: Harness, status: ProjectStatus
) -> None:
    project = await harness.project(status)
    exporting = await harness.do(harness.service.projects.export, harness.owner, project.id)
    assert exporting == replace(project, status=ProjectStatus.EXPORTING, stage=Stage.EXPORT)
    assert await harness.stored(project) == exporting


async def test_a_cancelled_project_tells_its_subscribers(harness: Harness) -> None:
    await harness.endpoint("project.cancelled")
    project = await harness.project(ProjectStatus.PROCESSING)
    cancelled = await harness.do(harness.service.projects.cancel, harness.owner, project.id)
    assert cancelled == replace(project, status=ProjectStatus.CANCELLED)
    assert [delivery.event_type for delivery in await harness.deliveries()] == ["project.cancelled"]


async def test_a_cancelled_project_without_a_subscriber_leaves_an_event(
    harness: Harness,
) -> None:
    await harness.endpoint()
    project = await harness.project(ProjectStatus.QUEUED)
    await harness.do(harness.service.projects.cancel, harness.owner, project.id)
    assert [(each.type, each.reason) for each in await harness.events()] == [
        ("project.cancelled", SilenceReason.NOT_SUBSCRIBED)
    ]


@pytest.mark.parametrize(
    ("status", "action"),
    [(ProjectStatus.QUEUED, "export"), (ProjectStatus.COMPLETED, "cancel")],
)
async def test_an_illegal_move_is_refused_and_stores_nothing(
    harness: Harness, status: ProjectStatus, action: str
) -> None:
    project = await harness.project(status)
    before = await harness.dump()
    with pytest.raises(IllegalTransition):
        await harness.do(getattr(harness.service.projects, action), harness.owner, project.id)
    assert await harness.dump() == before


async def test_a_deleted_project_leaves_a_tombstone_and_stops_what_is_pending(
    harness: Harness,
) -> None:
    await harness.endpoint()
    project = await harness.project(name="Private title")
    await harness.report(harness.milestone(project, artifacts=(VIDEO,)))
    [pending] = await harness.deliveries()
    completed = await harness.stored(project)
    harness.clock.advance(1)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    assert await harness.stored(project) == completed.deleted(harness.clock.now())
    assert await harness.deliveries() == [
        replace(
            pending,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.PROJECT_DELETED,
            next_attempt_at=None,
            finished_at=harness.clock.now(),
        )
    ]
    dump = await harness.dump()
    assert list(dump["artifacts"]) == list(dump["queue"]) == []
    assert "Private title" not in str(dump)


async def test_an_attempt_in_flight_may_finish_after_the_project_was_deleted(
    harness: Harness,
) -> None:
    await harness.endpoint()
    project = await harness.project()
    sending = await harness.complete(project)
    await harness.requeue(sending, DeliveryStatus.DELIVERING)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    [delivery] = await harness.deliveries()
    assert delivery.status is DeliveryStatus.DELIVERING
    [row] = (await harness.dump())["queue"]
    assert row.stop_reason == CancelReason.PROJECT_DELETED


async def test_whoever_names_a_deleted_project_is_told_so(harness: Harness) -> None:
    project = await harness.project()
    projects = harness.service.projects
    await harness.do(projects.delete, harness.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await harness.see(projects.get, harness.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await change(harness, project, ProjectChange(name="Again"))
    for again in (projects.export, projects.cancel, projects.delete):
        with pytest.raises(ProjectDeleted):
            await harness.do(again, harness.owner, project.id)


async def test_what_is_not_in_the_account_is_not_found(harness: Harness) -> None:
    projects, wanted = harness.service.projects, ProjectChange(name="Mine")
    theirs = await harness.project(caller=await harness.new_owner())
    before = await harness.dump()
    for project_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await harness.see(projects.get, harness.owner, project_id)
        with pytest.raises(NotFound):
            await harness.do(projects.change, harness.owner, project_id, wanted)
        for action in (projects.export, projects.cancel, projects.delete):
            with pytest.raises(NotFound):
                await harness.do(action, harness.owner, project_id)
    assert await harness.dump() == before


async def test_reading_and_writing_projects_need_their_own_scopes(harness: Harness) -> None:
    project, projects = await harness.project(), harness.service.projects
    reader = replace(harness.owner, scopes=frozenset({Scope.PROJECTS_READ}))
    writer = replace(harness.owner, scopes=frozenset({Scope.PROJECTS_WRITE}))
    with pytest.raises(MissingScope):
        await harness.see(projects.get, writer, project.id)
    with pytest.raises(MissingScope):
        await harness.see(projects.page, writer, EVERYTHING)
    with pytest.raises(MissingScope):
        await create(harness, reader)
    with pytest.raises(MissingScope):
        await harness.do(projects.change, reader, project.id, ProjectChange())
    for action in (projects.export, projects.cancel, projects.delete):
        with pytest.raises(MissingScope):
            await harness.do(action, reader, project.id)
