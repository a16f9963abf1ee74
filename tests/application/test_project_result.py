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
from tests.application.harness import BASE_URL, RULES, Harness

VIDEO = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
CAPTIONS = Artifact("captions", "trailer.vtt", "a/1.vtt", "text/vtt", 20)


async def result(harness: Harness, project_id: UUID) -> ProjectResult:
    return await harness.see(harness.service.results.get, harness.owner, project_id)


async def test_a_completed_project_has_a_result(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.COMPLETED)
    assert await result(harness, project.id) == ProjectResult(project, harness.clock.now(), ())


async def test_each_file_of_the_export_has_a_link_that_lives_a_quarter_of_an_hour(
    harness: Harness,
) -> None:
    project = await harness.project()
    await harness.report(harness.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    found = (await result(harness, project.id)).links
    end = harness.clock.now() + timedelta(minutes=15)
    assert [replace(link, url="") for link in found] == [
        ResultLink("video", "trailer.mp4", "", "video/mp4", 1_000, end),
        ResultLink("captions", "trailer.vtt", "", "text/vtt", 20, end),
    ]
    assert all(link.url.startswith(f"{BASE_URL}/media/") for link in found)
    assert len({link.url for link in found}) == 2


async def test_every_fetch_makes_fresh_links(harness: Harness) -> None:
    project = await harness.project()
    await harness.report(harness.milestone(project, artifacts=(VIDEO,)))
    [first] = (await result(harness, project.id)).links
    harness.clock.advance(60)
    [second] = (await result(harness, project.id)).links
    assert second.expires_at - first.expires_at == timedelta(seconds=60)
    assert second.url != first.url


async def test_a_link_lives_as_long_as_is_set_but_never_past_the_access_window(
    harness: Harness,
) -> None:
    harness = harness.reassembled(replace(RULES, link_ttl=timedelta(hours=2)))
    end = harness.clock.now() + timedelta(hours=3)
    project = await harness.project(access_expires_at=end)
    await harness.report(harness.milestone(project, artifacts=(VIDEO,)))
    [link] = (await result(harness, project.id)).links
    assert link.expires_at == end - timedelta(hours=1)
    harness.clock.advance(hours=2)
    [link] = (await result(harness, project.id)).links
    assert link.expires_at == end


async def names(harness: Harness, project_id: UUID) -> list[str]:
    return [link.name for link in (await result(harness, project_id)).links]


async def test_an_export_that_runs_again_replaces_the_files(harness: Harness) -> None:
    project = await harness.project()
    await harness.report(harness.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    again = replace(VIDEO, name="second cut.mp4")
    await harness.report(
        harness.milestone(project, "exporting"), harness.milestone(project, artifacts=(again,))
    )
    assert await names(harness, project.id) == ["second cut.mp4"]


@pytest.mark.parametrize("end", ["failed", "cancelled"])
async def test_an_export_that_does_not_complete_leaves_the_result_of_the_one_before(
    harness: Harness, end: str
) -> None:
    project, exported_at = await harness.project(), harness.clock.now()
    await harness.report(harness.milestone(project, artifacts=(VIDEO, CAPTIONS)))
    for status in ("exporting", end, "exporting", end, "processing"):
        harness.clock.advance(1)
        await harness.report(harness.milestone(project, status))
        found = await result(harness, project.id)
        assert (found.project.status, found.exported_at) == (status, exported_at)
        assert [link.name for link in found.links] == ["trailer.mp4", "trailer.vtt"]


async def test_the_time_of_an_export_is_when_its_completion_was_recorded(harness: Harness) -> None:
    project = await harness.project()
    harness.clock.advance(1)
    yesterday = harness.clock.now() - timedelta(days=1)
    await harness.report(harness.milestone(project, occurred_at=yesterday))
    assert (await result(harness, project.id)).exported_at == harness.clock.now()


async def test_files_that_a_completed_report_omits_stay_and_an_empty_list_removes_them(
    harness: Harness,
) -> None:
    project = await harness.project()
    await harness.report(harness.milestone(project, artifacts=(VIDEO,)))
    again = harness.milestone(project, "exporting"), harness.milestone(project)
    await harness.report(*again)
    assert await names(harness, project.id) == ["trailer.mp4"]
    none = harness.milestone(project, "exporting"), harness.milestone(project, artifacts=())
    await harness.report(*none)
    assert await names(harness, project.id) == []


async def test_in_one_batch_the_last_files_that_were_reported_stay(harness: Harness) -> None:
    project = await harness.project()
    await harness.report(
        harness.milestone(project, artifacts=(VIDEO,)),
        harness.milestone(project, "exporting"),
        harness.milestone(project, artifacts=(CAPTIONS,)),
        harness.milestone(project, "exporting"),
        harness.milestone(project),
        harness.milestone(project, "exporting"),
    )
    found = await result(harness, project.id)
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
async def test_a_file_that_cannot_be_called_so_is_not_taken_from_any_interface(
    sqlite_harness: Harness, changed: dict[str, Any], field: str, code: str
) -> None:
    project = await sqlite_harness.project()
    bad = sqlite_harness.milestone(project, artifacts=(VIDEO, replace(VIDEO, **changed)))
    [refused] = await sqlite_harness.report(bad)
    [error] = refused.errors
    assert not refused.accepted
    assert (error.field, error.code) == (f"artifacts[1].{field}", code)
    assert await sqlite_harness.stored(project) == project


async def test_without_a_media_store_a_result_with_files_is_not_to_be_had(
    sqlite_harness: Harness,
) -> None:
    project = await sqlite_harness.project()
    await sqlite_harness.report(sqlite_harness.milestone(project, artifacts=(VIDEO,)))
    bare = replace(sqlite_harness, media=NO_MEDIA).reassembled(RULES)
    with pytest.raises(MediaUnavailable):
        await result(bare, project.id)
    assert bare.service.downloads is None


async def test_a_project_that_was_never_exported_says_what_it_is(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.EXPORTING)
    with pytest.raises(ResultNotReady) as refused:
        await result(harness, project.id)
    assert refused.value.details == {"projectStatus": "exporting"}


async def test_at_the_end_of_its_window_the_result_is_gone(harness: Harness) -> None:
    end = harness.clock.now() + timedelta(hours=1)
    project = await harness.project(ProjectStatus.COMPLETED, access_expires_at=end)
    harness.clock.advance(3_599.999)
    await result(harness, project.id)
    harness.clock.advance(0.001)
    with pytest.raises(ProjectAccessExpired):
        await result(harness, project.id)


async def test_neither_an_event_nor_a_retry_nor_a_fetch_extends_access(harness: Harness) -> None:
    webhook = (await harness.endpoint()).view.endpoint
    end = harness.clock.now() + timedelta(hours=1)
    project = await harness.project(access_expires_at=end)
    [answer] = await harness.report(harness.milestone(project, artifacts=(VIDEO,)))
    [delivery] = await harness.deliveries(event_id=answer.event_id)
    await harness.enable(webhook.id, False)
    await harness.enable(webhook.id, True)
    await harness.do(harness.service.redeliver.one, harness.owner, webhook.id, delivery.id)
    [link] = (await result(harness, project.id)).links
    assert harness.service.downloads is not None
    with pytest.raises(MediaMissing):
        await harness.service.downloads.open(link.url.removeprefix(f"{BASE_URL}/media/"))
    assert (await harness.stored(project)).access_expires_at == end


async def test_the_result_of_a_deleted_project_is_gone(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.COMPLETED)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    with pytest.raises(ProjectDeleted):
        await result(harness, project.id)


async def test_the_result_of_another_account_is_not_found(harness: Harness) -> None:
    theirs = await harness.project(ProjectStatus.COMPLETED, caller=await harness.new_owner())
    for project_id in (theirs.id, UUID(int=1)):
        with pytest.raises(NotFound):
            await result(harness, project_id)


async def test_a_key_without_the_read_scope_is_refused(harness: Harness) -> None:
    project = await harness.project(ProjectStatus.COMPLETED)
    blind = replace(harness.owner, scopes=ACCOUNT_SCOPES - {Scope.PROJECTS_READ})
    with pytest.raises(MissingScope):
        await harness.see(harness.service.results.get, blind, project.id)
