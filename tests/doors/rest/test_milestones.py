import json
from typing import Any

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.project import ProjectStatus
from tests.doors.rest.client import Api, faults, problem

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
    await api.world.endpoint()
    loud = await api.world.project()
    quiet = await api.world.project(ProjectStatus.QUEUED)
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


async def test_a_repeated_report_gets_the_first_answer(api: Api) -> None:
    await api.world.endpoint()
    project = await api.world.project()
    first = await api.report(milestone(project.id))
    before = await api.stored()
    assert await api.report(milestone(project.id)) == first
    assert await api.stored() == before


async def test_everything_that_a_report_can_say_is_kept(api: Api) -> None:
    project = await api.world.project()
    more = {"stage": "export", "artifacts": [ARTIFACT] * 50, "error": None, "occurredAt": None}
    await api.report(milestone(project.id) | more)
    kept = await api.world.see(lambda t: t.projects.artifacts(project.account_id, project.id))
    assert (
        kept == [Artifact("video", "trailer.mp4", "exports/1/trailer.mp4", "video/mp4", 1234)] * 50
    )


async def test_a_failure_tells_its_error_shortened(api: Api) -> None:
    project = await api.world.project()
    error = {"code": "render_timeout", "message": "line one\nline two " + "x" * 400}
    await api.report(milestone(project.id, "failed", error=error))
    [event] = (await api.done("GET", "/v1/events"))["data"]
    assert event["body"]["data"]["error"] == error | {"message": error["message"][:300]}


@pytest.mark.parametrize(
    ("status", "more", "field", "code"),
    [
        ("completed", {"stage": "processing"}, "stage", "stage_mismatch"),
        ("ready", {"error": {"code": "a", "message": "b"}}, "error", "error_not_expected"),
        ("failed", {"artifacts": [ARTIFACT]}, "artifacts", "artifacts_not_expected"),
        ("failed", {"error": {"code": "a"}}, "error.message", "missing_field"),
        ("failed", {"error": {"code": "", "message": ""}}, "error.code", "too_short"),
        ("failed", {"error": {"code": "\x00", "message": ""}}, "error.code", "invalid_characters"),
        ("failed", {"error": {"code": "a", "message": "x" * 2001}}, "error.message", "too_long"),
        ("gone", {}, "status", "invalid_value"),
        ("ready", {"stage": "review"}, "stage", "invalid_value"),
        ("ready", {"reportId": ""}, "reportId", "too_short"),
        ("ready", {"reportId": "x" * 201}, "reportId", "too_long"),
        ("ready", {"reportId": "a\n"}, "reportId", "invalid_characters"),
        ("ready", {"projectId": "one"}, "projectId", "invalid_id"),
        ("ready", {"occurredAt": "2026-01-01T00:00:00"}, "occurredAt", "invalid_time"),
        ("ready", {"occurredAt": "1969-12-31T23:59:59Z"}, "occurredAt", "time_out_of_range"),
        ("ready", {"occurredAt": "1970-01-01T00:59:59+01:00"}, "occurredAt", "time_out_of_range"),
        ("ready", {"occurredAt": "9999-12-31T23:59:59-01:00"}, "occurredAt", "time_out_of_range"),
        ("completed", {"artifacts": [ARTIFACT] * 51}, "artifacts", "too_long"),
    ],
)
async def test_a_milestone_that_is_not_valid_is_named_and_nothing_is_stored(
    api: Api, status: str, more: dict[str, Any], field: str, code: str
) -> None:
    project = await api.world.project()
    before = await api.stored()
    body = {
        "milestones": [milestone(project.id, reportId="ok"), milestone(project.id, status, **more)]
    }
    answer = await api.call("POST", "/v1/milestones", body, key=api.pipeline)
    assert faults(answer) == [(f"milestones[1].{field}", code)]
    assert await api.stored() == before


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        *(("name", name, "invalid_file_name") for name in (".", "..", "a/b", "a\\b", "a\n")),
        ("name", "a\u202eb", "invalid_file_name"),
        ("name", "", "too_short"),
        ("name", "x" * 256, "too_long"),
        *(("key", key, "invalid_key") for key in ("/a", "..", "../a", "a/..", "a/../b", "a\\b")),
        *(("key", key, "invalid_key") for key in ("\t", "a//b", "a/", "./a", "a/.", "x" * 256)),
        ("key", "x" * 1025, "too_long"),
        ("contentType", "vidéo/mp4", "invalid_characters"),
        ("contentType", "x" * 256, "too_long"),
        ("kind", "x" * 51, "too_long"),
        ("sizeBytes", -1, "too_small"),
        ("sizeBytes", 2**53 + 1, "too_large"),
        ("sizeBytes", 1e300, "too_large"),
        ("sizeBytes", "1", "wrong_type"),
        ("sizeBytes", 1.5, "wrong_type"),
        ("sizeBytes", True, "wrong_type"),
    ],
)
async def test_an_artifact_that_is_not_valid_is_named(
    sqlite_api: Api, field: str, value: Any, code: str
) -> None:
    report = milestone(UNKNOWN, artifacts=[ARTIFACT | {field: value}])
    answer = await sqlite_api.call(
        "POST", "/v1/milestones", {"milestones": [report]}, key=sqlite_api.pipeline
    )
    assert faults(answer) == [(f"milestones[0].artifacts[0].{field}", code)]


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
    project = await api.world.project(ProjectStatus.QUEUED)
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
