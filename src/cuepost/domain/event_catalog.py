"""The event types and their data. All other code uses this table."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from cuepost.domain.instants import to_text
from cuepost.domain.project import ProcessingError, Project, ProjectStatus, Stage

Json = Mapping[str, Any]

ERROR_MESSAGE_LIMIT = 300
UNEXPLAINED = ProcessingError("unknown", "The pipeline gave no reason.")

_UUID: Json = {"type": "string", "format": "uuid"}
_STAGE: Json = {"title": "Stage", "enum": [stage.value for stage in Stage]}
TEST_EVENT = "webhook.test"
ENDPOINT_FAILING = "endpoint.failing"
ENDPOINT_RECOVERED = "endpoint.recovered"
_MOMENT: Json = {"type": "string", "format": "date-time"}
_SAMPLE_MOMENT = "2026-01-02T03:04:05.678Z"
_SAMPLE_PROJECT = "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"
_SAMPLE_WEBHOOK = "0198c0de-1111-7abc-8def-0123456789ab"


@dataclass(frozen=True, slots=True)
class EventType:
    name: str
    meaning: str
    subscribed_by_default: bool
    status: ProjectStatus | None
    data_properties: Json
    sample_data: Json

    @property
    def subscribable(self) -> bool:
        """Tests are sent on request."""
        return self.name != TEST_EVENT

    def schema(self) -> dict[str, Any]:
        """The JSON schema of the whole body."""
        return {
            "type": "object",
            "title": self.name,
            "description": self.meaning,
            "properties": {
                "id": _UUID,
                "type": {"const": self.name},
                "createdAt": {"type": "string", "format": "date-time"},
                "data": _object(self.data_properties),
            },
            "required": ["id", "type", "createdAt", "data"],
            "additionalProperties": False,
        }

    def sample(self) -> dict[str, Any]:
        return {
            "id": "0198c0de-7b2c-7f00-8a1b-2c3d4e5f6071",
            "type": self.name,
            "createdAt": "2026-01-02T03:04:05.678Z",
            "data": dict(self.sample_data),
        }


def _object(properties: Json) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def milestone_data(project: Project, error: ProcessingError | None, base_url: str) -> Json:
    """Of an event of a project: its metadata, never its name, media or caption text."""
    data: dict[str, Any] = {
        "projectId": str(project.id),
        "status": project.status,
        "stage": project.stage,
    }
    if project.status is ProjectStatus.COMPLETED:
        data["resultUrl"] = f"{base_url}/v1/projects/{project.id}/result"
    elif project.status is ProjectStatus.FAILED:
        error = error or UNEXPLAINED
        data["error"] = {"code": error.code, "message": error.message[:ERROR_MESSAGE_LIMIT]}
    return data


def endpoint_data(webhook_id: UUID, since: datetime, recovered_at: datetime | None) -> Json:
    """Of an operational event: which endpoint, and since when it failed; never its URL."""
    data = {"webhookId": str(webhook_id), "failingSince": to_text(since)}
    return data if recovered_at is None else data | {"recoveredAt": to_text(recovered_at)}


def webhook_test_data(webhook_id: UUID) -> Json:
    return {"webhookId": str(webhook_id), "message": TEST_MESSAGE}


TEST_MESSAGE = "This is a test event from cuepost. Handle it apart from project events."

CATALOG: tuple[EventType, ...] = (
    EventType(
        name="project.completed",
        meaning="The finished export is available.",
        subscribed_by_default=True,
        status=ProjectStatus.COMPLETED,
        data_properties={
            "projectId": _UUID,
            "status": {"const": "completed"},
            "stage": {"const": "export"},
            "resultUrl": {"type": "string", "format": "uri"},
        },
        sample_data={
            "projectId": _SAMPLE_PROJECT,
            "status": "completed",
            "stage": "export",
            "resultUrl": f"https://cuepost.example.com/v1/projects/{_SAMPLE_PROJECT}/result",
        },
    ),
    EventType(
        name="project.failed",
        meaning="Processing or export failed.",
        subscribed_by_default=True,
        status=ProjectStatus.FAILED,
        data_properties={
            "projectId": _UUID,
            "status": {"const": "failed"},
            "stage": _STAGE,
            "error": _object(
                {
                    "code": {"type": "string"},
                    "message": {"type": "string", "maxLength": ERROR_MESSAGE_LIMIT},
                }
            ),
        },
        sample_data={
            "projectId": _SAMPLE_PROJECT,
            "status": "failed",
            "stage": "export",
            "error": {"code": "render_timeout", "message": "The renderer ran out of time."},
        },
    ),
    EventType(
        name="project.ready",
        meaning="Full processing is complete; the video can be reviewed or exported. "
        "It does not confirm that a person has reviewed it.",
        subscribed_by_default=False,
        status=ProjectStatus.READY,
        data_properties={
            "projectId": _UUID,
            "status": {"const": "ready"},
            "stage": {"const": "processing"},
        },
        sample_data={"projectId": _SAMPLE_PROJECT, "status": "ready", "stage": "processing"},
    ),
    EventType(
        name="project.cancelled",
        meaning="The project was cancelled.",
        subscribed_by_default=False,
        status=ProjectStatus.CANCELLED,
        data_properties={"projectId": _UUID, "status": {"const": "cancelled"}, "stage": _STAGE},
        sample_data={"projectId": _SAMPLE_PROJECT, "status": "cancelled", "stage": "processing"},
    ),
    EventType(
        name=TEST_EVENT,
        meaning="Sent when a test is asked for. Handle it apart from project events.",
        subscribed_by_default=False,
        status=None,
        data_properties={"webhookId": _UUID, "message": {"type": "string"}},
        sample_data={"webhookId": _SAMPLE_WEBHOOK, "message": TEST_MESSAGE},
    ),
    EventType(
        name=ENDPOINT_FAILING,
        meaning="Another endpoint of the account has started to fail. It is an operational event: "
        "it is about no project, and is never sent to the endpoint that fails.",
        subscribed_by_default=False,
        status=None,
        data_properties={"webhookId": _UUID, "failingSince": _MOMENT},
        sample_data={"webhookId": _SAMPLE_WEBHOOK, "failingSince": _SAMPLE_MOMENT},
    ),
    EventType(
        name=ENDPOINT_RECOVERED,
        meaning="An endpoint of the account that was failing has recovered. It is an operational "
        "event, and is never sent to that endpoint itself.",
        subscribed_by_default=False,
        status=None,
        data_properties={"webhookId": _UUID, "failingSince": _MOMENT, "recoveredAt": _MOMENT},
        sample_data={
            "webhookId": _SAMPLE_WEBHOOK,
            "failingSince": _SAMPLE_MOMENT,
            "recoveredAt": "2026-01-02T03:14:05.678Z",
        },
    ),
)

BY_NAME: Mapping[str, EventType] = MappingProxyType({entry.name: entry for entry in CATALOG})
BY_STATUS: Mapping[ProjectStatus, EventType] = MappingProxyType(
    {entry.status: entry for entry in CATALOG if entry.status is not None}
)
SUBSCRIBABLE: tuple[str, ...] = tuple(entry.name for entry in CATALOG if entry.subscribable)
DEFAULT_SUBSCRIPTION: tuple[str, ...] = tuple(
    entry.name for entry in CATALOG if entry.subscribed_by_default
)
