"""Projects that agents make are projects like any other, and say where they come from."""

import pytest

from cuepost.domain.artifact import Artifact
from cuepost.domain.audit import Action
from tests.interfaces.mcp.agent import ERAS, SERVICE_HOST, McpService


@pytest.mark.parametrize("era", ERAS)
async def test_a_project_made_through_mcp_notifies_like_any_other(
    mcp_service: McpService, era: str
) -> None:
    async with mcp_service.agent(era=era) as agent:
        await agent.call_tool("webhooks_create", {"url": "https://hooks.example.com/cue"})
        project = (await agent.call_tool("projects_create", {"name": "Trailer"})).structured_content
        assert (project["origin"], project["status"]) == ("mcp", "queued")
        async with mcp_service.http(mcp_service.pipeline) as pipeline:
            for status in ("processing", "exporting", "completed"):
                report = {"reportId": status, "projectId": project["id"], "status": status}
                answer = await pipeline.post("/v1/milestones", json={"milestones": [report]})
        [result] = answer.json()["results"]
        assert (result["accepted"], result["notified"]) == (True, True)
        listed = await agent.call_tool("deliveries_list", {"project_id": project["id"]})
    [delivery] = listed.structured_content["data"]
    assert (delivery["eventType"], delivery["eventId"]) == ("project.completed", result["eventId"])


async def test_a_project_is_exported_changed_and_cancelled(mcp_service: McpService) -> None:
    project_id = str((await mcp_service.harness.project()).id)
    ends = "2026-02-01T00:00:00.000Z"
    changed = await mcp_service.done(
        "projects_update", project_id=project_id, access_expires_at=ends
    )
    assert (changed["name"], changed["accessExpiresAt"]) == ("Trailer", ends)
    renamed = await mcp_service.done("projects_update", project_id=project_id, name="Teaser")
    assert (renamed["name"], renamed["accessExpiresAt"]) == ("Teaser", ends)
    opened = await mcp_service.done(
        "projects_update", project_id=project_id, access_expires_at=None
    )
    assert opened["accessExpiresAt"] is None
    confirmed = {"project_id": project_id, "confirm_host": SERVICE_HOST}
    assert (await mcp_service.done("projects_cancel", **confirmed))["status"] == "cancelled"
    assert (await mcp_service.done("projects_export", project_id=project_id))[
        "status"
    ] == "exporting"
    result = await mcp_service.result("projects_export", project_id=project_id)
    assert result.text == (
        "illegal_transition: A project that is exporting cannot become exporting."
    )
    assert result.data["error"]["currentStatus"] == "exporting"


async def test_the_last_completed_export_is_the_result_while_another_one_runs(
    mcp_service: McpService,
) -> None:
    project = await mcp_service.harness.project()
    artifact = Artifact("video", "trailer.mp4", "a/1.mp4", "video/mp4", 1_000)
    await mcp_service.harness.report(mcp_service.harness.milestone(project, artifacts=(artifact,)))
    project_id = str(project.id)
    before = await mcp_service.done("projects_get_result", project_id=project_id)
    await mcp_service.done("projects_export", project_id=project_id)
    during = await mcp_service.done("projects_get_result", project_id=project_id)
    assert during == before | {"status": "exporting"}
    assert [each["name"] for each in during["links"]] == ["trailer.mp4"]
    assert during["exportedAt"] == "2026-01-02T03:04:05.678Z"


async def test_a_project_with_access_that_has_expired_is_refused(mcp_service: McpService) -> None:
    before = await mcp_service.stored()
    ended = "2026-01-02T03:04:05.678Z"
    result = await mcp_service.result("projects_create", name="Trailer", access_expires_at=ended)
    sentence = "expiry_in_the_past: access_expires_at: Choose a time in the future."
    assert (result.is_error, result.text) == (True, sentence)
    assert await mcp_service.stored() == before


async def test_an_agent_filters_the_audit_trail(mcp_service: McpService) -> None:
    await mcp_service.harness.endpoint()
    [made, *_] = (await mcp_service.done("audit_list"))["data"]
    for arguments, expected in (
        ({"action": "webhook.created"}, [made]),
        ({"action": "webhook", "actor": made["actor"], "since": made["at"]}, [made]),
        ({"action": "delivery"}, []),
        ({"action": "webhook", "until": made["at"]}, []),
    ):
        found = await mcp_service.done("audit_list", **arguments)
        assert found == {"data": expected, "nextCursor": None}, arguments
    refused = await mcp_service.result("audit_list", action="painted")
    assert refused.is_error
    assert "unknown_action" in refused.text


async def test_the_audit_trail_says_that_an_agent_did_it(mcp_service: McpService) -> None:
    async with mcp_service.agent() as agent:
        await agent.call_tool("webhooks_create", {"url": "https://hooks.example.com/cue"})
    [entry] = [
        each for each in await mcp_service.harness.audit() if each.action is Action.WEBHOOK_CREATED
    ]
    assert (entry.interface, entry.address) == ("mcp", "192.0.2.7")
    assert entry.actor.startswith("key:")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "missing_field: name: This field is required."),
        ({"name": "x" * 201}, "too_long: name: At most 200 characters are allowed."),
        ({"name": "x", "kind": "song"}, "invalid_value: kind: Choose from video, transcript."),
        ({"name": "\ud800"}, "malformed_json: arguments: The arguments are not valid JSON."),
        ({"name": 7}, "wrong_type: name: This must be text, not a whole number."),
        ({"name": "x", "Name": "y"}, "unknown_field: Name: This field is not known."),
    ],
)
async def test_wrong_arguments_are_named(
    sqlite_mcp_service: McpService, arguments: dict[str, object], said: str
) -> None:
    before = await sqlite_mcp_service.stored()
    result = await sqlite_mcp_service.result("projects_create", **arguments)
    assert (result.is_error, result.text) == (True, said)
    assert await sqlite_mcp_service.stored() == before
