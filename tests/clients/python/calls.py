"""The main calls with a client made by openapi-python-client; prints what it saw."""

import json
import os
from typing import TypeVar

from cuepost_client import AuthenticatedClient
from cuepost_client.api.deliveries import list_deliveries
from cuepost_client.api.events import list_events
from cuepost_client.api.milestones import report_milestones
from cuepost_client.api.projects import create_project
from cuepost_client.api.retries import retry_delivery
from cuepost_client.api.webhooks import create_webhook, update_webhook
from cuepost_client.models import (
    CreateProject,
    CreateWebhook,
    DeliveryStatus,
    EventTypeName,
    MilestoneReport,
    Problem,
    ProjectCompletedEvent,
    ProjectStatus,
    ReportMilestones,
    SubscribableEventType,
    UpdateWebhook,
)
from cuepost_client.types import Response

T = TypeVar("T")


def client(key: str) -> AuthenticatedClient:
    return AuthenticatedClient(
        os.environ["CLIENT_BASE_URL"],
        token=os.environ[key],
        raise_on_unexpected_status=True,
        httpx_args={"trust_env": False},
    )


def answered(response: Response[T | Problem]) -> T:
    assert response.parsed is not None
    assert not isinstance(response.parsed, Problem), response.parsed.code
    return response.parsed


account, pipeline = client("CLIENT_API_KEY"), client("CLIENT_SERVICE_KEY")

wanted = CreateWebhook(
    url=os.environ["CLIENT_RECEIVER_URL"], events=[SubscribableEventType.PROJECT_COMPLETED]
)
webhook = answered(
    create_webhook.sync_detailed(client=account, body=wanted, idempotency_key="create-webhook")
)
repeated = create_webhook.sync_detailed(
    client=account, body=wanted, idempotency_key="create-webhook"
)

update_webhook.sync_detailed(webhook.id, client=account, body=UpdateWebhook(enabled=False))
project = answered(create_project.sync_detailed(client=account, body=CreateProject(name="Trailer")))
reported = answered(
    report_milestones.sync_detailed(
        client=pipeline,
        body=ReportMilestones(
            [
                MilestoneReport(report_id=status.value, project_id=project.id, status=status)
                for status in (
                    ProjectStatus.PROCESSING,
                    ProjectStatus.EXPORTING,
                    ProjectStatus.COMPLETED,
                )
            ]
        ),
        idempotency_key="report-milestones",
    )
)
update_webhook.sync_detailed(webhook.id, client=account, body=UpdateWebhook(enabled=True))

events = answered(
    list_events.sync_detailed(
        client=account, project_id=project.id, type_=EventTypeName.PROJECT_COMPLETED
    )
)
result_urls = [
    event.body.data.result_url
    for event in events.data
    if isinstance(event.body, ProjectCompletedEvent)
]

deliveries = answered(
    list_deliveries.sync_detailed(client=account, status=DeliveryStatus.CANCELLED)
)
retried = [
    answered(
        retry_delivery.sync_detailed(
            delivery.webhook_id,
            delivery.id,
            client=account,
            idempotency_key=f"retry-{delivery.id}",
        )
    )
    for delivery in deliveries.data
]

refused = create_webhook.sync(client=account, body=CreateWebhook(url="ftp://hooks.example.com/"))
assert isinstance(refused, Problem)

print(  # noqa: T201  # what it saw is the result of this program
    json.dumps(
        {
            "repeated": answered(repeated).id == webhook.id,
            "replayed": repeated.headers["Idempotency-Replayed"],
            "accepted": [result.accepted for result in reported.results],
            "resultUrls": [url.replace(str(project.id), "PROJECT") for url in result_urls],
            "deliveries": [
                [each.event_type.value, each.status.value, each.reason and each.reason.value]
                for each in deliveries.data
            ],
            "retriedEvents": [str(delivery.event_id) for delivery in retried],
            "refused": [refused.status, refused.code],
            "errors": [[error.field, error.code] for error in refused.errors or []],
        }
    )
)
