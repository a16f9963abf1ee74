"""Following a download link: when its file is handed out, and what is said when it is not."""

from dataclasses import replace
from datetime import datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from cuepost.application.download import FollowLink
from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import (
    FileReplaced,
    Invalid,
    LinkExpired,
    LinkNotValid,
    MediaMissing,
    NotFound,
    ProjectAccessExpired,
    ProjectDeleted,
    Refused,
)
from cuepost.domain.project import Project
from tests.application.harness import BASE_URL, Harness

CONTENT = b"the trailer, as it was exported"


def downloads(harness: Harness) -> FollowLink:
    assert harness.service.downloads is not None
    return harness.service.downloads


async def put(harness: Harness, project: Project, **more: Any) -> Artifact:
    chosen: dict[str, Any] = {"kind": "video", "name": "trailer.mp4", "content_type": "video/mp4"}
    chosen |= more
    return await harness.service.media.put(project.id, BytesIO(CONTENT), len(CONTENT), **chosen)


async def token(harness: Harness, project: Project) -> str:
    found = await harness.see(harness.service.results.get, harness.owner, project.id)
    return found.links[0].url.removeprefix(f"{BASE_URL}/media/")


def in_a_minute(harness: Harness) -> datetime:
    return harness.clock.now() + timedelta(minutes=1)


async def exported(harness: Harness, **changed: Any) -> tuple[Project, str]:
    """A completed project with a file, and a link to it."""
    project = await harness.project(**changed)
    await harness.report(harness.milestone(project, artifacts=(await put(harness, project),)))
    return project, await token(harness, project)


async def fetched(harness: Harness, link: str) -> bytes:
    found = await downloads(harness).open(link)
    try:
        return await found.file.read(0, found.file.size)
    finally:
        found.file.close()


def stored_files(folder: Path) -> list[Path]:
    return [path for path in (folder / "media").rglob("*") if path.is_file()]


async def refused(harness: Harness, link: str) -> type[Refused]:
    with pytest.raises(Refused) as caught:
        await downloads(harness).open(link)
    return caught.type


async def test_a_link_leads_to_its_file_until_it_expires(harness: Harness) -> None:
    _, link = await exported(harness)
    harness.clock.advance(899.999)
    assert await fetched(harness, link) == CONTENT
    harness.clock.advance(0.001)
    assert await refused(harness, link) is LinkExpired


async def test_with_the_access_window_the_link_ends_as_well(harness: Harness) -> None:
    project, link = await exported(
        harness, access_expires_at=harness.clock.now() + timedelta(minutes=1)
    )
    harness.clock.advance(59.999)
    assert await fetched(harness, link) == CONTENT
    harness.clock.advance(0.001)
    assert await refused(harness, link) is LinkExpired
    with pytest.raises(ProjectAccessExpired):
        await token(harness, project)


async def test_when_the_window_is_drawn_in_a_link_made_before_is_refused(harness: Harness) -> None:
    project, link = await exported(harness)
    past = ProjectChange(sets_access=True, access_expires_at=harness.clock.now())
    await harness.do(harness.service.projects.change, harness.owner, project.id, past)
    assert await refused(harness, link) is ProjectAccessExpired


async def test_a_longer_window_does_not_bring_an_old_link_back(harness: Harness) -> None:
    project, link = await exported(
        harness, access_expires_at=harness.clock.now() + timedelta(minutes=1)
    )
    harness.clock.advance(60)
    endless = ProjectChange(sets_access=True, access_expires_at=None)
    await harness.do(harness.service.projects.change, harness.owner, project.id, endless)
    assert await refused(harness, link) is LinkExpired


async def test_after_deletion_a_link_made_before_is_refused(harness: Harness) -> None:
    project, link = await exported(harness)
    await harness.do(harness.service.projects.delete, harness.owner, project.id)
    assert await refused(harness, link) is ProjectDeleted
    harness.clock.advance(900)
    assert await refused(harness, link) is LinkExpired


async def test_of_an_account_that_was_erased_nothing_is_said_and_no_file_is_left(
    harness: Harness, tmp_path: Path
) -> None:
    _, link = await exported(harness)
    assert stored_files(tmp_path) != []
    while not await harness.service.maintenance.erasing.step(harness.account.id):
        pass
    assert await refused(harness, link) is LinkNotValid
    assert stored_files(tmp_path) == []


async def test_a_file_that_another_account_has_too_stays(harness: Harness, tmp_path: Path) -> None:
    project, _ = await exported(harness)
    other = await harness.project(caller=await harness.new_owner())
    shared = await harness.see(lambda t: t.projects.artifacts(harness.account.id, project.id))
    await harness.report(harness.milestone(other, artifacts=tuple(shared)))
    before = stored_files(tmp_path)
    while not await harness.service.maintenance.erasing.step(harness.account.id):
        pass
    assert stored_files(tmp_path) == before


async def test_a_link_goes_on_while_an_export_runs_again_and_not_once_it_has_replaced_the_file(
    harness: Harness,
) -> None:
    project, link = await exported(harness)
    await harness.report(harness.milestone(project, "exporting"))
    assert await fetched(harness, link) == CONTENT
    await harness.report(harness.milestone(project, artifacts=(await put(harness, project),)))
    assert await refused(harness, link) is FileReplaced
    assert await fetched(harness, await token(harness, project)) == CONTENT


async def test_a_changed_token_says_no_more_than_a_made_up_one(sqlite_harness: Harness) -> None:
    project, link = await exported(sqlite_harness)
    await sqlite_harness.do(
        sqlite_harness.service.projects.delete, sqlite_harness.owner, project.id
    )
    sqlite_harness.clock.advance(days=1)
    other = "B" if link[60] == "A" else "A"
    for forged in (link[:60] + other + link[61:], "A" * 116, "", "../../etc/passwd"):
        assert await refused(sqlite_harness, forged) is LinkNotValid


async def test_a_file_that_is_not_there_is_the_operators_matter(
    sqlite_harness: Harness, caplog: pytest.LogCaptureFixture
) -> None:
    project = await sqlite_harness.project()
    lost = Artifact("video", "a.mp4", "lost/a.mp4", "video/mp4", 1)
    await sqlite_harness.report(sqlite_harness.milestone(project, artifacts=(lost,)))
    link = await token(sqlite_harness, project)
    assert await refused(sqlite_harness, link) is MediaMissing
    assert caplog.messages == ["event=media_missing key='lost/a.mp4' cause=FileNotFoundError"]
    assert link not in caplog.text


async def test_a_stored_file_is_told_as_a_milestone_takes_it(sqlite_harness: Harness) -> None:
    project = await sqlite_harness.project()
    first, second = [await put(sqlite_harness, project) for _ in range(2)]
    assert first == Artifact("video", "trailer.mp4", first.key, "video/mp4", len(CONTENT))
    assert first.key.startswith(f"{project.id}/")
    assert first.key.endswith("/trailer.mp4")
    assert second.key != first.key


async def test_the_size_is_what_was_stored(sqlite_harness: Harness) -> None:
    project, heard = await sqlite_harness.project(), list[int]()
    stored = await sqlite_harness.service.media.put(
        project.id,
        BytesIO(CONTENT * 100_000),
        1,
        kind="video",
        name="grown.mp4",
        content_type="video/mp4",
        progress=heard.append,
    )
    assert stored.size_bytes == sum(heard) == len(CONTENT) * 100_000
    assert len(heard) == 3


async def test_nothing_is_stored_for_a_project_that_is_not_there_any_more(harness: Harness) -> None:
    expired = await harness.project(access_expires_at=harness.clock.now())
    deleted = await harness.project()
    await harness.do(harness.service.projects.delete, harness.owner, deleted.id)
    unknown = replace(deleted, id=UUID(int=1))
    for project, kind in (
        (expired, ProjectAccessExpired),
        (deleted, ProjectDeleted),
        (unknown, NotFound),
    ):
        with pytest.raises(kind):
            await put(harness, project)


@pytest.mark.parametrize("name", ["", "..", "a/b", "a\n", "x" * 256])
async def test_a_name_that_no_file_can_have_is_refused(sqlite_harness: Harness, name: str) -> None:
    project = await sqlite_harness.project()
    with pytest.raises(Invalid):
        await put(sqlite_harness, project, name=name)


async def test_a_name_that_is_too_long_for_a_disk_is_kept_all_the_same(
    sqlite_harness: Harness,
) -> None:
    project = await sqlite_harness.project()
    stored = await put(sqlite_harness, project, name="ü" * 200)
    assert (stored.name, stored.key.rpartition("/")[2]) == ("ü" * 200, "file")
