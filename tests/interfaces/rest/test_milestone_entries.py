"""Each entry of a report is judged by itself: one that is not valid holds up no other."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cuepost.domain.project import ProjectStatus
from tests.interfaces.rest.client import Api, faults, problem
from tests.interfaces.rest.test_milestones import ARTIFACT, UNKNOWN, milestone

JSON = {"Content-Type": "application/json"}


async def reported(api: Api, *entries: dict[str, Any]) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = (await api.report(*entries))["results"]
    return results


def refusal(result: dict[str, Any]) -> tuple[str | None, list[tuple[str, str]]]:
    """The report id and the faults of an entry that is not valid; its form is checked as well."""
    errors = result["errors"]
    assert result == {
        "reportId": result["reportId"],
        "accepted": False,
        "notified": False,
        "reason": "invalid",
        "errors": errors,
    }
    assert all(each["message"] for each in errors)
    return result["reportId"], [(each["field"], each["code"]) for each in errors]


@pytest.mark.parametrize(
    ("status", "more", "field", "code"),
    [
        ("completed", {"stage": "processing"}, "stage", "stage_mismatch"),
        ("ready", {"error": {"code": "a", "message": "b"}}, "error", "error_not_expected"),
        ("failed", {"artifacts": [ARTIFACT]}, "artifacts", "artifacts_not_expected"),
        ("failed", {"error": {"code": "a"}}, "error.message", "missing_field"),
        ("failed", {"error": {"code": "", "message": ""}}, "error.code", "too_short"),
        ("failed", {"error": {"code": "\x00", "message": ""}}, "error.code", "invalid_characters"),
        ("failed", {"error": {"code": "x" * 101, "message": ""}}, "error.code", "too_long"),
        ("failed", {"error": {"code": "a", "message": 5}}, "error.message", "wrong_type"),
        (
            "failed",
            {"error": {"code": "a", "message": "\x00"}},
            "error.message",
            "invalid_characters",
        ),
        ("failed", {"error": {"code": "a", "message": "b", "at": 1}}, "error.at", "unknown_field"),
        ("ready", {"colour": "red"}, "colour", "unknown_field"),
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
async def test_an_entry_that_is_not_valid_is_named_and_the_others_are_booked(
    api: Api, status: str, more: dict[str, Any], field: str, code: str
) -> None:
    project = await api.harness.project(ProjectStatus.QUEUED)
    results = await reported(
        api,
        milestone(project.id, "processing", reportId="before"),
        milestone(project.id, status, **more),
        milestone(project.id, "ready", reportId="after"),
    )
    assert [each["accepted"] for each in results] == [True, False, True]
    assert refusal(results[1]) == (None if field == "reportId" else "r1", [(field, code)])
    stored = await api.stored()
    assert {row.report_id for row in stored["reports"]} == {"before", "after"}
    assert [row.status for row in stored["projects"]] == ["ready"]


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
    report = milestone(UNKNOWN, artifacts=[ARTIFACT, ARTIFACT | {field: value}])
    [result] = await reported(sqlite_api, report)
    assert refusal(result) == ("r1", [(f"artifacts[1].{field}", code)])


async def test_one_bad_entry_among_five_hundred_refuses_no_other(api: Api) -> None:
    await api.harness.endpoint()
    projects = [await api.harness.project() for _ in range(20)]
    batch = [
        milestone(projects[place % 20].id, name, reportId=f"r{place}")
        for place, name in enumerate((["completed"] * 20 + ["exporting"] * 20) * 13)
    ][:500]
    batch[250] = batch[250] | {"status": "finished"}
    results = await reported(api, *batch)
    assert [each["reportId"] for each in results] == [each["reportId"] for each in batch]
    assert refusal(results[250]) == ("r250", [("status", "invalid_value")])
    # Its project cannot make the move that was to follow.
    assert [place for place, each in enumerate(results) if not each["accepted"]] == [250, 270]
    assert len((await api.stored())["reports"]) == 498


async def test_an_entry_with_several_contradictions_names_them_all(sqlite_api: Api) -> None:
    error = {"code": "a", "message": "b"}
    entry = milestone(UNKNOWN, "ready", stage="export", error=error, artifacts=[ARTIFACT])
    [result] = await reported(sqlite_api, entry)
    assert refusal(result) == (
        "r1",
        [
            ("stage", "stage_mismatch"),
            ("error", "error_not_expected"),
            ("artifacts", "artifacts_not_expected"),
        ],
    )


async def test_an_entry_that_was_not_valid_may_be_repeated_corrected(api: Api) -> None:
    project = await api.harness.project()
    before = await api.stored()
    for wrong in ({"status": "done"}, {"stage": "processing"}):
        [refused] = await reported(api, milestone(project.id) | wrong)
        assert refusal(refused)[0] == "r1"
    assert await api.stored() == before
    [corrected] = await reported(api, milestone(project.id))
    assert corrected["accepted"]


async def test_a_corrected_entry_may_stand_in_the_same_batch(api: Api) -> None:
    project = await api.harness.project()
    wrong, early = milestone(project.id, "done"), milestone(project.id, "ready")
    results = await reported(api, wrong, early, milestone(project.id), early)
    assert [each.get("reason") for each in results] == [
        "invalid",
        "illegal_transition",
        "not_subscribed",
        "illegal_transition",
    ]


@pytest.mark.parametrize(
    ("entry", "report_id", "field", "code"),
    [
        ({}, None, "reportId", "missing_field"),
        ({"reportId": "a"}, "a", "projectId", "missing_field"),
        ({"reportId": None}, None, "reportId", "wrong_type"),
        ({"reportId": 5}, None, "reportId", "wrong_type"),
        ({"reportId": ["a"]}, None, "reportId", "wrong_type"),
        ({"reportId": "a\x00"}, None, "reportId", "invalid_characters"),
        ({"reportId": "🎬", "x\x00": [{"y": []}]}, "🎬", "x�", "unknown_field"),
        ({"x": 1, "reportId": "a"}, "a", "x", "unknown_field"),
    ],
)
async def test_a_report_id_is_echoed_where_it_can_be_used(
    sqlite_api: Api, entry: dict[str, Any], report_id: str | None, field: str, code: str
) -> None:
    [result] = await reported(sqlite_api, entry)
    assert refusal(result) == (report_id, [(field, code)])


@pytest.mark.parametrize(
    ("body", "field", "code"),
    [
        ([], "body", "wrong_type"),
        ({}, "milestones", "missing_field"),
        ({"milestones": None}, "milestones", "wrong_type"),
        ({"milestones": {}}, "milestones", "wrong_type"),
        ({"milestones": []}, "milestones", "too_short"),
        ({"milestones": [milestone(UNKNOWN), 5]}, "milestones[1]", "wrong_type"),
        ({"milestones": [{}, None]}, "milestones[1]", "wrong_type"),
        ({"milestones": [[]]}, "milestones[0]", "wrong_type"),
        ({"milestones": ["{"]}, "milestones[0]", "wrong_type"),
        ({"milestones": [{}] * 501}, "milestones", "too_long"),
        ({"milestones": [milestone(UNKNOWN)] * 500 + [{}]}, "milestones", "too_long"),
        ({"milestones": [{}], "colour": "red"}, "colour", "unknown_field"),
    ],
)
async def test_what_is_no_list_of_objects_is_refused_as_a_whole(
    sqlite_api: Api, body: Any, field: str, code: str
) -> None:
    answer = await sqlite_api.call("POST", "/v1/milestones", body, key=sqlite_api.pipeline)
    assert faults(answer) == [(field, code)]


@pytest.mark.parametrize(
    ("entry", "code"),
    [
        (rb'{"reportId": "a", "reportId": "b"}', "duplicate_key"),
        (rb'{"reportId": 1e999, "x": {"y": 1, "\u0079": 1}}', "duplicate_key"),
        (rb'{"reportId": "\ud800"}', "malformed_json"),
        (rb'{"reportId": 1e999, "x": "\ud800"}', "malformed_json"),
        (b'{"reportId": 1e999, "x": "\xed\xa0\x80"}', "malformed_json"),
        (b'{"reportId": 5, "x": "\xff"}', "malformed_json"),
        (b'{"reportId": "a\x00"}', "malformed_json"),
        (b'{"reportId": NaN}', "malformed_json"),
        (b'{"x": ' + b"[" * 30_000 + b"]" * 30_000 + b"}", "malformed_json"),
    ],
)
async def test_a_body_that_is_not_readable_is_refused_as_a_whole(
    api: Api, entry: bytes, code: str
) -> None:
    project = await api.harness.project()
    good = json.dumps(milestone(project.id)).encode()
    before = await api.stored()
    for entries in (good + b"," + entry, entry + b"," + good):
        body = b'{"milestones": [' + entries + b"]}"
        answer = await api.call(
            "POST", "/v1/milestones", content=body, headers=JSON, key=api.pipeline
        )
        assert problem(answer) == (400, code)
    assert await api.stored() == before


async def test_a_number_that_no_type_holds_is_a_fault_of_its_entry(sqlite_api: Api) -> None:
    body = b'{"milestones": [{"reportId": "a", "projectId": 1e999}]}'
    answer = await sqlite_api.call(
        "POST", "/v1/milestones", content=body, headers=JSON, key=sqlite_api.pipeline
    )
    [result] = answer.json()["results"]
    assert refusal(result) == ("a", [("projectId", "too_large")])


def near(right: Any) -> st.SearchStrategy[Any]:
    """Mostly what is right, sometimes anything."""
    scalars = (
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text()
    )
    return st.one_of(st.just(right), st.just(right), scalars, st.lists(scalars, max_size=2))


entries = st.fixed_dictionaries(
    {},
    optional={
        "reportId": near("r"),
        "projectId": near(UNKNOWN),
        "status": near("completed") | st.sampled_from(ProjectStatus),
        "stage": near("export"),
        "error": near({"code": "a", "message": "b"}),
        "artifacts": near([ARTIFACT]),
        "occurredAt": near("2026-01-02T03:04:05Z"),
        "other": near(None),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(entries, min_size=1, max_size=5))
async def test_any_list_of_objects_gets_one_result_each_in_order(
    sqlite_api: Api, batch: list[dict[str, Any]]
) -> None:
    results = await reported(sqlite_api, *batch)
    assert len(results) == len(batch)
    for entry, result in zip(batch, results, strict=True):
        assert (result["accepted"], result["notified"]) == (False, False)
        if result["reason"] == "invalid":
            report_id, found = refusal(result)
            assert report_id in (None, entry.get("reportId"))
            assert found
        else:
            # Without a known project that is all that can be said of a valid entry.
            assert result["reason"] == "project_not_found"
            assert result["reportId"] == entry["reportId"]
