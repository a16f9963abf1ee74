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
from tests.application.world import EVERYTHING, World

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)


async def create(world: World, caller: Caller | None = None, **changed: object) -> Project:
    wanted: dict[str, object] = {
        "name": "Trailer",
        "kind": ProjectKind.VIDEO,
        "origin": Origin.API,
        "access_expires_at": None,
    }
    return await world.do(
        world.service.projects.create,
        caller or world.owner,
        **(wanted | changed),  # type: ignore[arg-type]  # named by the test
    )


async def change(world: World, project: Project, wanted: ProjectChange) -> Project:
    return await world.do(world.service.projects.change, world.owner, project.id, wanted)


@pytest.mark.parametrize("origin", Origin)
async def test_a_new_project_is_queued_and_found_again(world: World, origin: Origin) -> None:
    end = world.clock.now() + timedelta(days=7)
    made = await create(world, name="Teaser", origin=origin, access_expires_at=end)
    assert made == Project(
        account_id=world.account.id,
        id=made.id,
        name="Teaser",
        kind=ProjectKind.VIDEO,
        origin=origin,
        status=ProjectStatus.QUEUED,
        stage=Stage.PROCESSING,
        access_expires_at=end,
        created_at=world.clock.now(),
        updated_at=world.clock.now(),
    )
    assert await world.see(world.service.projects.get, world.owner, made.id) == made


async def test_a_project_is_not_created_with_access_that_has_expired(world: World) -> None:
    before = await world.dump()
    with pytest.raises(Invalid) as refused:
        await create(world, access_expires_at=world.clock.now())
    assert [error.code for error in refused.value.errors] == ["expiry_in_the_past"]
    assert await world.dump() == before


async def test_projects_are_listed_newest_first_page_by_page(world: World) -> None:
    first, second, third = [await create(world) for _ in range(3)]
    await world.do(world.service.projects.delete, world.owner, second.id)
    await create(world, await world.new_owner())
    everything = await world.see(world.service.projects.page, world.owner, EVERYTHING)
    assert everything == [third, first]
    behind = Page(limit=1, before=third.id)
    assert await world.see(world.service.projects.page, world.owner, behind) == [first]


async def test_name_and_access_window_can_be_changed_apart(world: World) -> None:
    end = world.clock.now() + timedelta(days=1)
    made = await create(world, access_expires_at=end)
    world.clock.advance(1)
    renamed = await change(world, made, ProjectChange(name="Teaser"))
    assert renamed == replace(made, name="Teaser", updated_at=world.clock.now())
    endless = await change(world, made, ProjectChange(sets_access=True, access_expires_at=None))
    assert endless == replace(renamed, access_expires_at=None)
    assert await world.stored(made) == endless


async def test_a_window_set_to_the_past_stops_what_is_pending(world: World) -> None:
    await world.endpoint()
    project, other = await world.project(), await world.project()
    pending, untouched = await world.complete(project), await world.complete(other)
    ended = world.clock.now() - timedelta(days=1)
    await change(world, project, ProjectChange(sets_access=True, access_expires_at=ended))
    assert await world.deliveries() == [
        untouched,
        replace(
            pending,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.PROJECT_ACCESS_EXPIRED,
            next_attempt_at=None,
            finished_at=world.clock.now(),
        ),
    ]
    assert await world.queued() == {untouched.id}


async def test_a_window_set_to_the_future_stops_nothing(world: World) -> None:
    await world.endpoint()
    project = await world.project()
    pending = await world.complete(project)
    soon = world.clock.now() + timedelta(milliseconds=1)
    await change(world, project, ProjectChange(sets_access=True, access_expires_at=soon))
    assert await world.deliveries() == [pending]


async def test_an_export_moves_the_project_silently(world: World) -> None:
    await world.endpoint("project.completed", "project.ready", "project.cancelled")
    project = await world.project(ProjectStatus.READY)
    exporting = await world.do(world.service.projects.export, world.owner, project.id)
    assert exporting == replace(project, status=ProjectStatus.EXPORTING, stage=Stage.EXPORT)
    assert await world.stored(project) == exporting
    assert await world.events() == []


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
    world: World, status: ProjectStatus
) -> None:
    project = await world.project(status)
    exporting = await world.do(world.service.projects.export, world.owner, project.id)
    assert exporting == replace(project, status=ProjectStatus.EXPORTING, stage=Stage.EXPORT)
    assert await world.stored(project) == exporting


async def test_a_cancelled_project_tells_its_subscribers(world: World) -> None:
    await world.endpoint("project.cancelled")
    project = await world.project(ProjectStatus.PROCESSING)
    cancelled = await world.do(world.service.projects.cancel, world.owner, project.id)
    assert cancelled == replace(project, status=ProjectStatus.CANCELLED)
    assert [delivery.event_type for delivery in await world.deliveries()] == ["project.cancelled"]


async def test_a_cancelled_project_that_nobody_subscribed_to_leaves_an_event(world: World) -> None:
    await world.endpoint()
    project = await world.project(ProjectStatus.QUEUED)
    await world.do(world.service.projects.cancel, world.owner, project.id)
    assert [(each.type, each.reason) for each in await world.events()] == [
        ("project.cancelled", SilenceReason.NOT_SUBSCRIBED)
    ]


@pytest.mark.parametrize(
    ("status", "action"),
    [(ProjectStatus.QUEUED, "export"), (ProjectStatus.COMPLETED, "cancel")],
)
async def test_an_illegal_move_is_refused_and_stores_nothing(
    world: World, status: ProjectStatus, action: str
) -> None:
    project = await world.project(status)
    before = await world.dump()
    with pytest.raises(IllegalTransition):
        await world.do(getattr(world.service.projects, action), world.owner, project.id)
    assert await world.dump() == before


async def test_a_deleted_project_leaves_a_tombstone_and_stops_what_is_pending(
    world: World,
) -> None:
    await world.endpoint()
    project = await world.project(name="Private title")
    await world.report(world.milestone(project, artifacts=(VIDEO,)))
    [pending] = await world.deliveries()
    completed = await world.stored(project)
    world.clock.advance(1)
    await world.do(world.service.projects.delete, world.owner, project.id)
    assert await world.stored(project) == completed.deleted(world.clock.now())
    assert await world.deliveries() == [
        replace(
            pending,
            status=DeliveryStatus.CANCELLED,
            reason=CancelReason.PROJECT_DELETED,
            next_attempt_at=None,
            finished_at=world.clock.now(),
        )
    ]
    dump = await world.dump()
    assert list(dump["artifacts"]) == list(dump["queue"]) == []
    assert "Private title" not in str(dump)


async def test_an_attempt_in_flight_may_finish_after_the_project_was_deleted(
    world: World,
) -> None:
    await world.endpoint()
    project = await world.project()
    sending = await world.complete(project)
    await world.requeue(sending, DeliveryStatus.DELIVERING)
    await world.do(world.service.projects.delete, world.owner, project.id)
    [delivery] = await world.deliveries()
    assert delivery.status is DeliveryStatus.DELIVERING
    [row] = (await world.dump())["queue"]
    assert row.stop_reason == CancelReason.PROJECT_DELETED


async def test_whoever_names_a_deleted_project_is_told_so(world: World) -> None:
    project = await world.project()
    projects = world.service.projects
    await world.do(projects.delete, world.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await world.see(projects.get, world.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await change(world, project, ProjectChange(name="Again"))
    for again in (projects.export, projects.cancel, projects.delete):
        with pytest.raises(ProjectDeleted):
            await world.do(again, world.owner, project.id)


async def test_what_is_not_in_the_account_is_not_found(world: World) -> None:
    projects, wanted = world.service.projects, ProjectChange(name="Mine")
    theirs = await world.project(caller=await world.new_owner())
    before = await world.dump()
    for project_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await world.see(projects.get, world.owner, project_id)
        with pytest.raises(NotFound):
            await world.do(projects.change, world.owner, project_id, wanted)
        for action in (projects.export, projects.cancel, projects.delete):
            with pytest.raises(NotFound):
                await world.do(action, world.owner, project_id)
    assert await world.dump() == before


async def test_reading_and_writing_projects_need_their_own_scopes(world: World) -> None:
    project, projects = await world.project(), world.service.projects
    reader = replace(world.owner, scopes=frozenset({Scope.PROJECTS_READ}))
    writer = replace(world.owner, scopes=frozenset({Scope.PROJECTS_WRITE}))
    with pytest.raises(MissingScope):
        await world.see(projects.get, writer, project.id)
    with pytest.raises(MissingScope):
        await world.see(projects.page, writer, EVERYTHING)
    with pytest.raises(MissingScope):
        await create(world, reader)
    with pytest.raises(MissingScope):
        await world.do(projects.change, reader, project.id, ProjectChange())
    for action in (projects.export, projects.cancel, projects.delete):
        with pytest.raises(MissingScope):
            await world.do(action, reader, project.id)
