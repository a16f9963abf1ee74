"""Rules about projects and their milestones, from every way in to what receivers get."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.project import ProjectStatus
from tests.application.harness import Harness
from tests.interfaces.mcp import agent
from tests.interfaces.web import page_client
from tests.spec.test_http_rules import URL, Holder, holder

READY = {"status": "ready", "stage": "processing"}


@pytest.fixture
async def owner(harness: Harness, api: httpx2.AsyncClient) -> Holder:
    return await holder(harness, api, *ACCOUNT_SCOPES)


@pytest.fixture
async def pipeline(harness: Harness, api: httpx2.AsyncClient) -> Holder:
    return await holder(harness, api, Scope.MILESTONES_REPORT)


@pytest.fixture
async def mcp_service(harness: Harness) -> AsyncIterator[agent.McpService]:
    async with agent.opened(harness) as mcp_service:
        yield mcp_service


async def report(pipeline: Holder, project_id: str, status: str) -> Any:
    entry = {"reportId": f"{project_id}-{status}", "projectId": project_id, "status": status}
    answer = await pipeline.done("POST", "/v1/milestones", json={"milestones": [entry]})
    [result] = answer["results"]
    return result


async def in_the_application(harness: Harness) -> str:
    signed_in = await page_client.opened(harness).sign_in()
    await signed_in.get("/settings/projects")
    where = (await signed_in.done("/settings/projects", name="Trailer")).partition("?")[0]
    return where.rpartition("/")[2]


async def test_projects_from_every_way_in_notify_alike_and_keep_where_they_come_from(
    harness: Harness, owner: Holder, pipeline: Holder, mcp_service: agent.McpService
) -> None:
    await owner.done("POST", "/v1/webhooks", json={"url": URL})
    async with mcp_service.agent() as client:
        by_mcp = await client.call_tool("projects_create", {"name": "Trailer"})
    ids = {
        "app": await in_the_application(harness),
        "api": (await owner.done("POST", "/v1/projects", json={"name": "Trailer"}))["id"],
        "mcp": by_mcp.structured_content["id"],
    }
    assert len(set(ids.values())) == 3
    bodies = set()
    for origin, project_id in ids.items():
        stored = await owner.done("GET", f"/v1/projects/{project_id}")
        assert (stored["origin"], stored["kind"]) == (origin, "video")
        results = [
            await report(pipeline, project_id, status)
            for status in ("processing", "exporting", "completed")
        ]
        assert [each["notified"] for each in results] == [False, False, True], origin
        deliveries = await owner.done("GET", f"/v1/deliveries?projectId={project_id}")
        [delivery] = deliveries["data"]
        assert (delivery["eventType"], delivery["status"]) == ("project.completed", "pending")
        event = await owner.done("GET", f"/v1/events/{delivery['eventId']}")
        data = json.dumps(event["body"]["data"]).replace(project_id, "…")
        bodies.add(data)
        assert (await owner.done("GET", f"/v1/projects/{project_id}"))["origin"] == origin
    assert len(bodies) == 1


async def test_ready_is_sent_when_processing_ends_and_waits_for_no_review(
    owner: Holder, pipeline: Holder
) -> None:
    chosen = {"url": URL, "events": ["project.ready", "project.completed"]}
    await owner.done("POST", "/v1/webhooks", json=chosen)
    project_id = (await owner.done("POST", "/v1/projects", json={"name": "Trailer"}))["id"]
    assert not (await report(pipeline, project_id, "processing"))["notified"]
    ready = await report(pipeline, project_id, "ready")
    assert (ready["accepted"], ready["notified"]) == (True, True)
    event = await owner.done("GET", f"/v1/events/{ready['eventId']}")
    assert list(event["body"].items()) == [
        ("id", ready["eventId"]),
        ("type", "project.ready"),
        ("createdAt", "2026-01-02T03:04:05.678Z"),
        ("data", {"projectId": project_id} | READY),
    ]
    [delivery] = (await owner.done("GET", "/v1/deliveries"))["data"]
    assert (delivery["eventId"], delivery["status"]) == (ready["eventId"], "pending")
    project = await owner.done("GET", f"/v1/projects/{project_id}")
    assert {name: project[name] for name in READY} == READY


async def test_an_export_needs_no_review_and_says_nothing_of_one(
    owner: Holder, pipeline: Holder
) -> None:
    chosen = {"url": URL, "events": ["project.ready", "project.completed"]}
    await owner.done("POST", "/v1/webhooks", json=chosen)
    expected = {
        ("processing", "ready", "exporting", "completed"): ["project.completed", "project.ready"],
        ("processing", "exporting", "completed"): ["project.completed"],
    }
    for statuses, types in expected.items():
        project_id = (await owner.done("POST", "/v1/projects", json={"name": "Trailer"}))["id"]
        for status in statuses:
            assert (await report(pipeline, project_id, status))["accepted"]
        events = await owner.done("GET", f"/v1/events?projectId={project_id}")
        assert [each["type"] for each in events["data"]] == types


async def test_ready_says_in_the_catalogue_that_it_confirms_no_review(owner: Holder) -> None:
    catalogue = (await owner.done("GET", "/v1/event-types"))["data"]
    [ready] = [each for each in catalogue if each["name"] == "project.ready"]
    assert ready["meaning"] == (
        "Full processing is complete; the video can be reviewed or exported. It does not confirm "
        "that a person has reviewed it."
    )
    assert list(ready["schema"]["properties"]["data"]["properties"]) == ["projectId", *READY]
    # There is no status by which a review could be told.
    assert not [status for status in ProjectStatus if "review" in status or "approv" in status]
