"""Argument types that several tools share, with their descriptions for agents."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from cuepost.interfaces.mcp.tool import Arguments
from cuepost.interfaces.wire_models.event_types import EventTypeName
from cuepost.interfaces.wire_models.paging import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    Cursor,
    id_in,
)
from cuepost.interfaces.wire_models.shapes import Time
from cuepost.ports.records import Page

WebhookId = Annotated[UUID, Meta(description="Id of a webhook endpoint.")]
DeliveryId = Annotated[UUID, Meta(description="Id of a delivery.")]
EventId = Annotated[UUID, Meta(description="Id of an event, sent as the webhook-id header.")]
ProjectId = Annotated[UUID, Meta(description="Id of a project.")]
RetryId = Annotated[UUID, Meta(description="Id of a bulk retry.")]
ChosenType = Annotated[EventTypeName, Meta(description="Only events of this type.")]
Since = Annotated[Time, Meta(description="Created at or after this time.")]
Until = Annotated[Time, Meta(description="Created before this time.")]
ReceiverHost = Annotated[
    str,
    Meta(
        max_length=300,
        description="Host name in the endpoint's current URL, to confirm; ask the user first.",
    ),
]
ServiceHost = Annotated[
    str,
    Meta(
        max_length=300,
        description="Host name of this service's base URL, to confirm; ask the user first.",
    ),
]
Limit = Annotated[int, Meta(ge=1, le=LARGEST_LIMIT, description="Maximum number of entries.")]


class Paged(Arguments, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None

    def page(self) -> Page:
        """One entry more than `limit`, to detect whether there is a next page."""
        return Page(self.limit + 1, None if self.cursor is None else id_in(self.cursor))


class OneWebhook(Arguments, frozen=True):
    webhook_id: WebhookId


class OneWebhookConfirmed(Arguments, frozen=True):
    webhook_id: WebhookId
    confirm_host: ReceiverHost


class OneProject(Arguments, frozen=True):
    project_id: ProjectId


class OneProjectConfirmed(Arguments, frozen=True):
    project_id: ProjectId
    confirm_host: ServiceHost
