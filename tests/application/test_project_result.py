"""The result address: who may ask, when there is a result, and when it is gone."""

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuepost.application.project_result import ProjectResult, ResultLink
from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import (
    MediaMissing,
    MediaUnavailable,
    MissingScope,
    NotFound,
    ProjectAccessExpired,
    ProjectDeleted,
    ResultNotReady,
)
from cuepost.domain.project import ProjectStatus
from cuepost.ports.media import NO_MEDIA
from tests.application.world import BASE_URL, RULES, World

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 20)


async def result(world: World, project_id: UUID) -> ProjectResult:
    return await world.see(world.service.results.get, world.owner, project_id)


async def test_a_completed_project_has_a_result(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    assert await result(world, project.id) == ProjectResult(project, world.clock.now(), ())


async def test_each_file_of_the_export_has_a_link_that_lives_a_quarter_of_an_hour(
    world: World,
) -> None:
    project = await world.project()
    await world.report(world.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    found = (await result(world, project.id)).links
    end = world.clock.now() + timedelta(minutes=15)
    assert [replace(link, url="") for link in found] == [
        ResultLink("video", "trailer.mp4", "", "video/mp4", 1_000, end),
        ResultLink("captions", "trailer.vtt", "", "text/vtt", 20, end),
    ]
    assert all(link.url.startswith(f"{BASE_URL}/media/") for link in found)
    assert len({link.url for link in found}) == 2


async def test_every_fetch_makes_fresh_links(world: World) -> None:
    project = await world.project()
    await world.report(world.milestone(project, artifacts=(VIDEO,)))
    [first] = (await result(world, project.id)).links
    world.clock.advance(60)
    [second] = (await result(world, project.id)).links
    assert second.expires_at - first.expires_at == timedelta(seconds=60)
    assert second.url != first.url


async def test_a_link_lives_as_long_as_is_set_but_never_past_the_access_window(
    world: World,
) -> None:
    world = world.reassembled(replace(RULES, link_ttl=timedelta(hours=2)))
    end = world.clock.now() + timedelta(hours=3)
    project = await world.project(access_expires_at=end)
    await world.report(world.milestone(project, artifacts=(VIDEO,)))
    [link] = (await result(world, project.id)).links
    assert link.expires_at == end - timedelta(hours=1)
    world.clock.advance(hours=2)
    [link] = (await result(world, project.id)).links
    assert link.expires_at == end


async def names(world: World, project_id: UUID) -> list[str]:
    return [link.name for link in (await result(world, project_id)).links]


async def test_an_export_that_runs_again_replaces_the_files(world: World) -> None:
    project = await world.project()
    await world.report(world.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    again = replace(VIDEO, name="second cut.mp4")
    await world.report(
        world.milestone(project, "exporting"), world.milestone(project, artifacts=(again,))
    )
    assert await names(world, project.id) == ["second cut.mp4"]


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_an_export_that_does_not_complete_leaves_the_result_of_the_one_before(
    world: World, end: str
) -> None:
    project, exported_at = await world.project(), world.clock.now()
    await world.report(world.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    for status in ("exporting", end, "exporting", end, "processing"):
        world.clock.advance(1)
        await world.report(world.milestone(project, status))
        found = await result(world, project.id)
        assert (found.project.status, found.exported_at) == (status, exported_at)
        assert [link.name for link in found.links] == ["trailer.mp4", "trailer.vtt"]


async def test_the_time_of_an_export_is_when_its_completion_was_recorded(world: World) -> None:
    project = await world.project()
    world.clock.advance(1)
    yesterday = world.clock.now() - timedelta(days=1)
    await world.report(world.milestone(project, occurred_at=yesterday))
    assert (await result(world, project.id)).exported_at == world.clock.now()


async def test_files_that_a_completed_report_omits_stay_and_an_empty_list_removes_them(
    world: World,
) -> None:
    project = await world.project()
    await world.report(world.milestone(project, artifacts=(VIDEO,)))
    again = world.milestone(project, "exporting"), world.milestone(project)
    await world.report(*again)
    assert await names(world, project.id) == ["trailer.mp4"]
    none = world.milestone(project, "exporting"), world.milestone(project, artifacts=())
    await world.report(*none)
    assert await names(world, project.id) == []


async def test_in_one_batch_the_last_files_that_were_reported_stay(world: World) -> None:
    project = await world.project()
    await world.report(
        world.milestone(project, artifacts=(VIDEO,)),
        world.milestone(project, "exporting"),
        world.milestone(project, artifacts=(CAPTIONS,)),
        world.milestone(project, "exporting"),
        world.milestone(project),
        world.milestone(project, "exporting"),
    )
    found = await result(world, project.id)
    assert (found.project.status, [link.name for link in found.links]) == (
        ProjectStatus.EXPORTING,
        ["trailer.vtt"],
    )


@pytest.mark.parametrize(
    ("changed", "field", "code"),
    [
        ({"name": "../a"}, "name", "invalid_file_name"),
        ({"key": "a/../../b"}, "key", "invalid_key"),
        ({"key": "a\udc80"}, "key", "invalid_key"),
    ],
)
async def test_a_file_that_cannot_be_called_so_is_not_taken_from_any_door(
    sqlite_world: World, changed: dict[str, Any], field: str, code: str
) -> None:
    project = await sqlite_world.project()
    bad = sqlite_world.milestone(project, artifacts=(VIDEO, replace(VIDEO, **changed)))
    [refused] = await sqlite_world.report(bad)
    [error] = refused.errors
    assert not refused.accepted
    assert (error.field, error.code) == (f"artifacts[1].{field}", code)
    assert await sqlite_world.stored(project) == project


async def test_without_a_media_store_a_result_with_files_is_not_to_be_had(
    sqlite_world: World,
) -> None:
    project = await sqlite_world.project()
    await sqlite_world.report(sqlite_world.milestone(project, artifacts=(VIDEO,)))
    bare = replace(sqlite_world, media=NO_MEDIA).reassembled(RULES)
    with pytest.raises(MediaUnavailable):
        await result(bare, project.id)
    assert bare.service.downloads is None


async def test_a_project_that_was_never_exported_says_what_it_is(world: World) -> None:
    project = await world.project(ProjectStatus.EXPORTING)
    with pytest.raises(ResultNotReady) as refused:
        await result(world, project.id)
    assert refused.value.details == {"projectStatus": "exporting"}


async def test_at_the_end_of_its_window_the_result_is_gone(world: World) -> None:
    end = world.clock.now() + timedelta(hours=1)
    project = await world.project(ProjectStatus.COMPLETED, access_expires_at=end)
    world.clock.advance(3_599.999)
    await result(world, project.id)
    world.clock.advance(0.001)
    with pytest.raises(ProjectAccessExpired):
        await result(world, project.id)


async def test_neither_an_event_nor_a_retry_nor_a_fetch_extends_access(world: World) -> None:
    webhook = (await world.endpoint()).view.endpoint
    end = world.clock.now() + timedelta(hours=1)
    project = await world.project(access_expires_at=end)
    [answer] = await world.report(world.milestone(project, artifacts=(VIDEO,)))
    [delivery] = await world.deliveries(event_id=answer.event_id)
    await world.enable(webhook.id, False)
    await world.enable(webhook.id, True)
    await world.do(world.service.redeliver.one, world.owner, webhook.id, delivery.id)
    [link] = (await result(world, project.id)).links
    assert world.service.downloads is not None
    with pytest.raises(MediaMissing):
        await world.service.downloads.open(link.url.removeprefix(f"{BASE_URL}/media/"))
    assert (await world.stored(project)).access_expires_at == end


async def test_the_result_of_a_deleted_project_is_gone(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    await world.do(world.service.projects.delete, world.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await result(world, project.id)


async def test_the_result_of_another_account_is_not_found(world: World) -> None:
    theirs = await world.project(ProjectStatus.COMPLETED, caller=await world.new_owner())
    for project_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await result(world, project_id)


async def test_a_key_without_the_read_scope_is_refused(world: World) -> None:
    project = await world.project(ProjectStatus.COMPLETED)
    blind = replace(world.owner, scopes=ACCOUNT_SCOPES - {Scope.PROJECTS_READ})
    with pytest.raises(MissingScope):
        await world.see(world.service.results.get, blind, project.id)
