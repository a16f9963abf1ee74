"""The result address while a project is exported again, and what a report does to its files."""

from io import BytesIO
from typing import Any
from uuid import UUID

import pytest

from cuepost.domain.project import ProjectStatus
from tests.interfaces.rest.client import NOW, Api, problem

FIRST, SECOND = b"the first cut", b"the second cut"
LATER = "2026-01-02T03:05:05.678Z"
# What becomes of a completed project that is exported again; each list is what the pipeline
# reports, or what its owner does.
AFTERWARDS = (
    ("POST export",),
    ("POST export", "POST cancel"),
    ("POST export", "POST cancel", "POST export"),
    ("exporting", "failed"),
    ("exporting", "failed", "processing"),
    ("exporting", "failed", "processing", "ready"),
    ("exporting", "cancelled", "processing", "failed"),
)


async def stored_file(api: Api, project: str, content: bytes) -> dict[str, Any]:
    made = await api.harness.service.media.put(
        UUID(project),
        BytesIO(content),
        len(content),
        kind="video",
        name="trailer.mp4",
        content_type="video/mp4",
    )
    return {
        "kind": made.kind,
        "name": made.name,
        "key": made.key,
        "contentType": made.content_type,
        "sizeBytes": made.size_bytes,
    }


async def report(api: Api, project: str, status: str, **more: Any) -> None:
    number = len((await api.stored())["reports"])
    milestone = {"reportId": f"r{number}", "projectId": project, "status": status, **more}
    [result] = (await api.report(milestone))["results"]
    assert result["accepted"], result


async def exported(api: Api) -> str:
    """A project that was completed with a file."""
    project = str((await api.harness.project()).id)
    await report(api, project, "completed", artifacts=[await stored_file(api, project, FIRST)])
    return project


async def result(api: Api, project: str) -> Any:
    return await api.done("GET", f"/v1/projects/{project}/result")


async def downloaded(api: Api, link: str) -> bytes:
    answer = await api.call("GET", link, key="")
    assert answer.status_code == 200, answer.text
    return answer.content


async def go_on(api: Api, project: str, steps: tuple[str, ...]) -> None:
    for step in steps:
        api.harness.clock.advance(1)
        method, _, action = step.partition(" ")
        if action:
            await api.done(method, f"/v1/projects/{project}/{action}")
        else:
            await report(api, project, step)


@pytest.mark.parametrize("steps", AFTERWARDS, ids=" ".join)
async def test_the_result_of_the_last_completed_export_stays_until_another_one_completes(
    api: Api, steps: tuple[str, ...]
) -> None:
    project = await exported(api)
    before = await result(api, project)
    [handed_out] = before["links"]
    await go_on(api, project, steps)
    after = await result(api, project)
    [fresh] = after["links"]
    shown = await api.done("GET", f"/v1/projects/{project}")
    assert shown["status"] != "completed"
    assert after == before | {
        "status": shown["status"],
        "stage": shown["stage"],
        "exportedAt": NOW,
        "links": [handed_out | {"url": fresh["url"], "expiresAt": fresh["expiresAt"]}],
    }
    assert [await downloaded(api, each["url"]) for each in (handed_out, fresh)] == [FIRST, FIRST]


async def test_the_next_completed_export_replaces_the_result_and_its_time(api: Api) -> None:
    project = await exported(api)
    [old] = (await result(api, project))["links"]
    api.harness.clock.advance(30)
    await api.done("POST", f"/v1/projects/{project}/export")
    api.harness.clock.advance(30)
    files = [await stored_file(api, project, SECOND)]
    await report(api, project, "completed", artifacts=files, occurredAt="2020-01-01T00:00:00Z")
    found = await result(api, project)
    [link] = found["links"]
    assert (found["status"], found["exportedAt"]) == ("completed", LATER)
    assert await downloaded(api, link["url"]) == SECOND
    assert problem(await api.call("GET", old["url"], key="")) == (410, "file_replaced")


@pytest.mark.parametrize("artifacts", [{}, {"artifacts": None}], ids=["omitted", "null"])
async def test_a_completed_report_that_omits_artifacts_keeps_the_files_there_are(
    api: Api, artifacts: dict[str, None]
) -> None:
    project = await exported(api)
    [old] = (await result(api, project))["links"]
    api.harness.clock.advance(60)
    await report(api, project, "exporting")
    await report(api, project, "completed", **artifacts)
    found = await result(api, project)
    [link] = found["links"]
    assert found["exportedAt"] == LATER
    assert [await downloaded(api, each["url"]) for each in (old, link)] == [FIRST, FIRST]


async def test_a_completed_report_with_an_empty_list_of_artifacts_removes_the_files(
    api: Api,
) -> None:
    project = await exported(api)
    [old] = (await result(api, project))["links"]
    await report(api, project, "exporting")
    await report(api, project, "completed", artifacts=[])
    assert (await result(api, project))["links"] == []
    assert problem(await api.call("GET", old["url"], key="")) == (410, "file_replaced")


@pytest.mark.parametrize("status", [each for each in ProjectStatus if each != "completed"])
async def test_without_a_completed_export_there_is_no_result(
    api: Api, status: ProjectStatus
) -> None:
    project = await api.harness.project(status)
    answer = await api.call("GET", f"/v1/projects/{project.id}/result")
    assert problem(answer) == (409, "result_not_ready")
    assert answer.json()["projectStatus"] == status


@pytest.mark.parametrize("status", ["failed", "cancelled"])
async def test_a_project_that_failed_or_was_cancelled_is_exported_again(
    api: Api, status: str
) -> None:
    await api.harness.endpoint()
    project = await api.harness.project(ProjectStatus(status))
    path = f"/v1/projects/{project.id}"
    started = await api.done("POST", f"{path}/export")
    assert (started["status"], started["stage"]) == ("exporting", "export")
    await report(api, str(project.id), "completed")
    found = await api.done("GET", f"{path}/result")
    assert (found["status"], found["exportedAt"]) == ("completed", NOW)
    [delivery] = (await api.done("GET", "/v1/deliveries"))["data"]
    assert delivery["eventType"] == "project.completed"


async def test_access_ends_for_a_result_that_outlived_a_cancelled_export(api: Api) -> None:
    project = await exported(api)
    [link] = (await result(api, project))["links"]
    await go_on(api, project, ("POST export", "POST cancel"))
    path = f"/v1/projects/{project}"
    await api.done("PATCH", path, {"accessExpiresAt": NOW})
    for gone in (f"{path}/result", link["url"]):
        assert problem(await api.call("GET", gone)) == (410, "project_access_expired")
    await api.done("DELETE", path)
    for gone in (f"{path}/result", link["url"]):
        assert problem(await api.call("GET", gone)) == (410, "project_deleted")
