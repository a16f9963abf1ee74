import json
from typing import Any

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.project import ProjectStatus
from tests.interfaces.rest.client import Api, faults, problem

UNKNOWN = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"
ARTIFACT = {
    "kind": "video",
    "name": "trailer.mp4",
    "key": "exports/1/trailer.mp4",
    "contentType": "video/mp4",
    "sizeBytes": 1234,
}


def milestone(project: Any, status: str = "completed", **more: Any) -> dict[str, Any]:
    return {"reportId": "r1", "projectId": str(project), "status": status, **more}


async def test_each_milestone_is_answered_in_order(api: Api) -> None:
    await api.harness.endpoint()
    loud = await api.harness.project()
    quiet = await api.harness.project(ProjectStatus.QUEUED)
    answer = await api.report(
        milestone(loud.id, reportId="a"),
        milestone(quiet.id, "processing", reportId="b"),
        milestone(quiet.id, "completed", reportId="c"),
        milestone(UNKNOWN, reportId="d"),
        milestone(quiet.id, "ready", reportId="e"),
    )
    ready, completed = (each["id"] for each in (await api.done("GET", "/v1/events"))["data"])
    assert answer == {
        "results": [
            {"reportId": "a", "accepted": True, "eventId": completed, "notified": True},
            {
                "reportId": "b",
                "accepted": True,
                "notified": False,
                "reason": "no_event_for_status",
            },
            {"reportId": "c", "accepted": False, "notified": False, "reason": "illegal_transition"},
            {"reportId": "d", "accepted": False, "notified": False, "reason": "project_not_found"},
            {
                "reportId": "e",
                "accepted": True,
                "eventId": ready,
                "notified": False,
                "reason": "not_subscribed",
            },
        ]
    }


async def test_a_repeated_report_gets_the_first_answer_however_it_is_written(api: Api) -> None:
    await api.harness.endpoint()
    project = await api.harness.project()
    first = await api.report(milestone(project.id, artifacts=[ARTIFACT]))
    before = await api.stored()
    again = milestone(project.id, stage="export", error=None, occurredAt=None)
    again["artifacts"] = [dict(reversed(ARTIFACT.items())) | {"sizeBytes": 1234.0}]
    for repeated in (again, dict(reversed(again.items()))):
        assert await api.report(repeated) == first
    assert await api.stored() == before


async def test_a_failure_is_the_same_when_only_what_is_cut_off_differs(api: Api) -> None:
    project = await api.harness.project()
    at, same = "2026-01-02T03:04:05.678Z", "2026-01-02T04:04:05.678999+01:00"
    errors = [{"code": "a", "message": "x" * 300 + more} for more in ("", "y", "z" * 10_000)]
    first = await api.report(milestone(project.id, "failed", error=errors[0], occurredAt=at))
    assert first["results"][0]["accepted"]
    for error in errors:
        again = milestone(project.id, "failed", error=error, occurredAt=same)
        assert await api.report(again) == first


@pytest.mark.parametrize(
    "other",
    [
        {"projectId": UNKNOWN},
        {"status": "exporting", "artifacts": None},
        {"artifacts": []},
        {"artifacts": None},
        {"artifacts": [ARTIFACT, ARTIFACT]},
        *({"artifacts": [ARTIFACT | {name: "other"}]} for name in ("kind", "name", "key")),
        {"artifacts": [ARTIFACT | {"contentType": "video/webm"}]},
        {"artifacts": [ARTIFACT | {"sizeBytes": 1235}]},
        {"occurredAt": "2026-01-02T03:04:05.678Z"},
    ],
)
async def test_a_report_id_with_other_content_is_refused(api: Api, other: dict[str, Any]) -> None:
    await api.harness.endpoint()
    project, another = await api.harness.project(), await api.harness.project()
    if "projectId" in other:
        other = {"projectId": str(another.id)}
    whole = milestone(project.id, artifacts=[ARTIFACT])
    [first] = (await api.report(whole))["results"]
    before = await api.stored()
    refused = {
        "reportId": "r1",
        "accepted": False,
        "notified": False,
        "reason": "report_id_reused",
    }
    assert (await api.report(whole | other))["results"] == [refused]
    assert (await api.report(whole | other, whole))["results"] == [refused, first]
    assert await api.stored() == before


@pytest.mark.parametrize(
    "other",
    [
        {"error": {"code": "b", "message": "m"}},
        {"error": {"code": "a", "message": "n"}},
        {"error": None},
        {"stage": "processing"},
        {"stage": None},
        {"status": "cancelled", "error": None},
    ],
)
async def test_a_report_id_with_another_failure_is_refused(api: Api, other: dict[str, Any]) -> None:
    project = await api.harness.project()
    whole = milestone(project.id, "failed", stage="export", error={"code": "a", "message": "m"})
    first, second = (await api.report(whole, whole | other))["results"]
    assert first["accepted"]
    assert (second["accepted"], second["reason"]) == (False, "report_id_reused")
    assert len((await api.done("GET", "/v1/events"))["data"]) == 1


async def test_everything_that_a_report_can_say_is_kept(api: Api) -> None:
    project = await api.harness.project()
    more = {"stage": "export", "artifacts": [ARTIFACT] * 50, "error": None, "occurredAt": None}
    await api.report(milestone(project.id) | more)
    kept = await api.harness.see(lambda t: t.projects.artifacts(project.account_id, project.id))
    assert (
        kept == [Artifact("video", "trailer.mp4", "exports/1/trailer.mp4", "video/mp4", 1234)] * 50
    )


async def test_a_failure_tells_its_error_shortened(api: Api) -> None:
    project = await api.harness.project()
    error = {"code": "render_timeout", "message": "line one\nline two " + "x" * 400}
    await api.report(milestone(project.id, "failed", error=error))
    [event] = (await api.done("GET", "/v1/events"))["data"]
    assert event["body"]["data"]["error"] == error | {"message": error["message"][:300]}


@pytest.mark.parametrize("length", [300, 301, 2_001, 10_000, 200_000])
@pytest.mark.parametrize("text", ["x", "🎬", "é"])
async def test_an_error_message_of_any_length_is_cut_between_two_characters(
    sqlite_api: Api, length: int, text: str
) -> None:
    project = await sqlite_api.harness.project()
    error = {"code": "render_timeout", "message": "x" * 299 + text * (length - 299)}
    body = {"milestones": [milestone(project.id, "failed", error=error)]}
    answer = await sqlite_api.call(
        "POST",
        "/v1/milestones",
        content=json.dumps(body, ensure_ascii=False).encode(),
        headers={"Content-Type": "application/json"},
        key=sqlite_api.pipeline,
    )
    assert [each["accepted"] for each in answer.json()["results"]] == [True]
    [event] = (await sqlite_api.done("GET", "/v1/events"))["data"]
    assert event["body"]["data"]["error"]["message"] == "x" * 299 + text


@pytest.mark.parametrize("key", ["a", "a/b", "a/.b", "..a/b..", ".../a", "ü/ 1"])
@pytest.mark.parametrize("size", [0, 2**53, 5.0, 1e3])
async def test_unusual_artifacts_are_taken(sqlite_api: Api, key: str, size: float) -> None:
    report = milestone(UNKNOWN, artifacts=[ARTIFACT | {"key": key, "sizeBytes": size}])
    await sqlite_api.report(report)


@pytest.mark.parametrize(("count", "code"), [(0, "too_short"), (501, "too_long")])
async def test_a_batch_has_one_to_five_hundred_milestones(
    sqlite_api: Api, count: int, code: str
) -> None:
    body = {"milestones": [milestone(UNKNOWN)] * count}
    answer = await sqlite_api.call("POST", "/v1/milestones", body, key=sqlite_api.pipeline)
    assert faults(answer) == [("milestones", code)]


async def test_five_hundred_milestones_are_taken_at_once(api: Api) -> None:
    project = await api.harness.project(ProjectStatus.QUEUED)
    path = ["processing", "failed"]
    batch = [milestone(project.id, path[place % 2], reportId=f"r{place}") for place in range(500)]
    results = (await api.report(*batch))["results"]
    assert [each["reportId"] for each in results] == [each["reportId"] for each in batch]
    assert all(each["accepted"] for each in results)


async def test_a_body_of_a_mebibyte_is_taken_and_a_longer_one_is_not(sqlite_api: Api) -> None:
    short = json.dumps({"milestones": [milestone(UNKNOWN)]}).encode()
    kind = {"Content-Type": "application/json"}
    for size, status in ((2**20, 200), (2**20 + 1, 413)):
        body = short + b" " * (size - len(short))
        answer = await sqlite_api.call(
            "POST", "/v1/milestones", key=sqlite_api.pipeline, content=body, headers=kind
        )
        assert answer.status_code == status
    assert problem(answer) == (413, "payload_too_large")
