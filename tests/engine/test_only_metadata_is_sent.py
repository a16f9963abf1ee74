"""What receivers get is metadata: nothing that people wrote or made is in a request."""

import json
from typing import Any
from uuid import UUID

from cuepost.domain.artifact import Artifact
from cuepost.domain.event_catalog import CATALOG
from cuepost.domain.project import ProcessingError, Project, ProjectStatus
from tests.application.harness import BASE_URL
from tests.support.engine_harness import MINUTE, EngineHarness, RunScenarios

CAPTION = "Once upon a time"
URL = "https://hooks.example.com/cue"
ARTIFACTS = (
    Artifact("video", f"{CAPTION}.mp4", f"a/{CAPTION}.mp4", "video/mp4", 1_000),
    Artifact(CAPTION, "captions.vtt", "a/captions.vtt", f"text/vtt; title={CAPTION}", 10),
)
# The message is the pipeline's own and is cut; what lies behind the limit may be anything.
BROKEN = ProcessingError("render_failed", "x" * 300 + CAPTION)
ERROR = {"code": "render_failed", "message": "x" * 300}


async def every_event(engine: EngineHarness) -> tuple[Project, UUID]:
    """Each type is sent once, about one project that has gone through everything."""
    harness = engine.harness
    names = [entry.name for entry in CATALOG if entry.subscribable]
    made = await harness.do(harness.service.webhooks.create, harness.owner, URL, names, CAPTION)
    project = await harness.project(ProjectStatus.PROCESSING, name=CAPTION)

    async def report(status: str, **more: Any) -> None:
        milestone = harness.milestone(project, status, report_id=f"{CAPTION} {status}", **more)
        [answer] = await harness.report(milestone)
        assert answer.accepted
        await engine.later(MINUTE)

    await report("ready")
    await harness.do(harness.service.projects.export, harness.owner, project.id)
    await report("failed", error=BROKEN)
    await harness.do(harness.service.projects.export, harness.owner, project.id)
    await report("completed", artifacts=ARTIFACTS)
    await harness.do(harness.service.projects.export, harness.owner, project.id)
    await harness.do(harness.service.projects.cancel, harness.owner, project.id)
    await engine.later(MINUTE)
    await harness.do(harness.service.webhooks.send_test, harness.owner, made.view.endpoint.id)
    await engine.later(MINUTE)
    return project, made.view.endpoint.id


def test_each_event_is_exactly_its_metadata_whatever_people_wrote(
    run_scenarios: RunScenarios,
) -> None:
    async def scenario(engine: EngineHarness) -> None:
        async with engine.delivering():
            project, webhook_id = await every_event(engine)
        sent = [json.loads(each.request.body) for each in engine.sent]
        assert [list(each) for each in sent] == [["id", "type", "createdAt", "data"]] * 5
        of_project = {"projectId": str(project.id)}
        result_url = f"{BASE_URL}/v1/projects/{project.id}/result"
        assert {each["type"]: each["data"] for each in sent} == {
            "project.ready": of_project | {"status": "ready", "stage": "processing"},
            "project.failed": of_project | {"status": "failed", "stage": "export", "error": ERROR},
            "project.completed": of_project
            | {"status": "completed", "stage": "export", "resultUrl": result_url},
            "project.cancelled": of_project | {"status": "cancelled", "stage": "export"},
            "webhook.test": {
                "webhookId": str(webhook_id),
                "message": "This is a test event from cuepost. Handle it apart from project "
                "events.",
            },
        }
        for each in engine.sent:
            assert CAPTION not in str([each.request.headers, each.request.body])
            assert len(each.request.body) < 700

    run_scenarios(scenario)
