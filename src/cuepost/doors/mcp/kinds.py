"""Kinds of arguments that several tools take, each with what an agent has to know of it."""

from typing import Annotated
from uuid import UUID

from msgspec import Meta

from cuepost.doors.mcp.tool import Arguments
from cuepost.doors.wire_models.paging import (
    DEFAULT_LIMIT,
    LARGEST_LIMIT,
    Cursor,
    id_in,
)
from cuepost.ports.records import Page

WebhookId = Annotated[UUID, Meta(description="The id of a webhook endpoint.")]
DeliveryId = Annotated[UUID, Meta(description="The id of a delivery.")]
EventId = Annotated[UUID, Meta(description="The id of an event, which is also its webhook-id.")]
ProjectId = Annotated[UUID, Meta(description="The id of a project.")]
RetryId = Annotated[UUID, Meta(description="The id of a bulk retry.")]
ReceiverHost = Annotated[
    str,
    Meta(
        max_length=300,
        description="The host name in the endpoint's present URL. Ask the user before you "
        "confirm; without the right one nothing is done.",
    ),
]
ServiceHost = Annotated[
    str,
    Meta(
        max_length=300,
        description="The host name of this cuepost service itself, as in its base URL. Ask the "
        "user before you confirm; without the right one nothing is done.",
    ),
]
Limit = Annotated[int, Meta(ge=1, le=LARGEST_LIMIT)]


class Paged(Arguments, frozen=True):
    limit: Limit = DEFAULT_LIMIT
    cursor: Cursor | None = None

    def page(self) -> Page:
        """One more than asked for, which tells whether there is a next page."""
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
