from dataclasses import replace
from typing import Any

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.project import ProjectStatus, Stage
from cuepost.ports.media import NO_MEDIA
from tests.application.harness import BASE_URL, Harness
from tests.interfaces.rest.client import NOW, Api, faults, opened, problem
from tests.support.coming_back import says_when_to_come_back

LATER = "2026-01-02T03:04:06.678Z"


async def created(api: Api, **chosen: Any) -> dict[str, Any]:
    made: dict[str, Any] = await api.done("POST", "/v1/projects", {"name": "Trailer", **chosen})
    return made


async def test_a_created_project_is_answered_whole(api: Api) -> None:
    answer = await api.call("POST", "/v1/projects", {"name": "Trailer"})
    made = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{BASE_URL}/v1/projects/{made['id']}"
    assert made == {
        "id": made["id"],
        "name": "Trailer",
        "kind": "video",
        "origin": "api",
        "status": "queued",
        "stage": "processing",
        "accessExpiresAt": None,
        "createdAt": NOW,
        "updatedAt": NOW,
    }
    assert await api.done("GET", f"/v1/projects/{made['id']}") == made
    assert await api.done("GET", "/v1/projects") == {"data": [made], "nextCursor": None}


async def test_kind_and_access_window_can_be_chosen(api: Api) -> None:
    made = await created(api, kind="transcript", accessExpiresAt="2026-02-01T01:00:00.9999+01:00")
    assert (made["kind"], made["accessExpiresAt"]) == ("transcript", "2026-02-01T00:00:00.999Z")
    made = await created(api, kind=None, accessExpiresAt=None)
    assert (made["kind"], made["accessExpiresAt"]) == ("video", None)


@pytest.mark.parametrize("ended", [NOW, "2026-01-02T04:04:05.678+01:00", "1999-12-31T00:00:00Z"])
async def test_a_project_with_access_that_has_expired_is_refused(api: Api, ended: str) -> None:
    before = await api.stored()
    answer = await api.call("POST", "/v1/projects", {"name": "a", "accessExpiresAt": ended})
    assert faults(answer) == [("accessExpiresAt", "expiry_in_the_past")]
    assert await api.stored() == before
    made = await created(api, accessExpiresAt="2026-01-02T03:04:05.679Z")
    closed = await api.done("PATCH", f"/v1/projects/{made['id']}", {"accessExpiresAt": ended})
    assert closed["accessExpiresAt"] <= NOW


async def test_a_change_tells_absent_from_null(api: Api) -> None:
    made = await created(api, accessExpiresAt="2026-02-01T00:00:00Z")
    path = f"/v1/projects/{made['id']}"
    api.harness.clock.advance(1)
    renamed = await api.done("PATCH", path, {"name": "Teaser"})
    assert renamed == made | {"name": "Teaser", "updatedAt": LATER}
    endless = await api.done("PATCH", path, {"accessExpiresAt": None})
    assert endless == renamed | {"accessExpiresAt": None}


async def test_a_project_is_exported_and_cancelled_where_its_status_allows(api: Api) -> None:
    project = await api.harness.project(ProjectStatus.READY)
    path = f"/v1/projects/{project.id}"
    api.harness.clock.advance(1)
    exporting = await api.done("POST", f"{path}/export")
    assert (exporting["status"], exporting["stage"]) == ("exporting", "export")
    assert exporting["updatedAt"] == LATER
    refused = await api.call("POST", f"{path}/export")
    assert problem(refused) == (409, "illegal_transition")
    assert refused.json()["currentStatus"] == "exporting"
    cancelled = await api.done("POST", f"{path}/cancel")
    assert cancelled == exporting | {"status": "cancelled"}
    refused = await api.call("POST", f"{path}/cancel")
    assert problem(refused) == (409, "illegal_transition")
    assert refused.json()["currentStatus"] == "cancelled"
    assert await api.done("POST", f"{path}/export") == exporting


async def test_a_deleted_project_is_gone_wherever_it_is_named(api: Api) -> None:
    made = await created(api)
    path = f"/v1/projects/{made['id']}"
    answer = await api.call("DELETE", path)
    assert (answer.status_code, answer.content) == (204, b"")
    for method, gone in (
        ("GET", path),
        ("PATCH", path),
        ("DELETE", path),
        ("POST", f"{path}/export"),
        ("POST", f"{path}/cancel"),
        ("GET", f"{path}/result"),
    ):
        body = {"name": "x"} if method == "PATCH" else None
        assert problem(await api.call(method, gone, body)) == (410, "project_deleted")
    assert (await api.done("GET", "/v1/projects"))["data"] == []


async def test_the_result_of_a_completed_project_is_answered(api: Api) -> None:
    project = await api.harness.project(ProjectStatus.COMPLETED, stage=Stage.EXPORT)
    assert await api.done("GET", f"/v1/projects/{project.id}/result") == {
        "projectId": str(project.id),
        "status": "completed",
        "stage": "export",
        "links": [],
        "exportedAt": NOW,
        "accessExpiresAt": None,
    }


async def test_a_result_waits_for_completion_and_ends_with_the_access_window(api: Api) -> None:
    made = await created(api, accessExpiresAt="2026-01-03T00:00:00Z")
    path = f"/v1/projects/{made['id']}/result"
    early = await api.call("GET", path)
    assert problem(early) == (409, "result_not_ready")
    assert early.json()["projectStatus"] == "queued"
    api.harness.clock.advance(days=1)
    assert problem(await api.call("GET", path)) == (410, "project_access_expired")


async def test_a_result_without_a_media_store_is_to_be_asked_for_again(
    sqlite_harness: Harness,
) -> None:
    api = await opened(replace(sqlite_harness, media=NO_MEDIA))
    project = await api.harness.project()
    artifact = Artifact("video", "a.mp4", "a.mp4", "video/mp4", 1)
    await api.harness.report(api.harness.milestone(project, artifacts=(artifact,)))
    answer = await api.call("GET", f"/v1/projects/{project.id}/result")
    assert problem(answer) == (503, "media_unavailable")
    assert says_when_to_come_back(answer.headers)
    assert problem(await api.call("GET", "/media/x")) == (404, "not_found")
    await api.client.aclose()


@pytest.mark.parametrize("path", ["", "/result"])
async def test_an_unknown_project_is_not_found(api: Api, path: str) -> None:
    unknown = f"/v1/projects/0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90{path}"
    assert problem(await api.call("GET", unknown)) == (404, "not_found")
