"""Events with their delivery status for each endpoint."""

from uuid import UUID

from msgspec import UNSET, Raw, UnsetType

from cuepost.application.browse_history import EventView
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.delivery import Delivery as StoredDelivery
from cuepost.domain.event import SilenceReason
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.event_types import EventTypeName, known_type
from cuepost.interfaces.wire_models.paging import PageQuery
from cuepost.interfaces.wire_models.shapes import (
    Moment,
    ResponseModel,
    Time,
    given,
    optional_instant,
)
from cuepost.ports.history import EventFilter


class EventQuery(PageQuery, frozen=True):
    """Events created at or after `since` and before `until`."""

    type: EventTypeName | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET

    def chosen(self) -> EventFilter:
        return EventFilter(
            event_type=known_type(given(self.type)),
            project_id=given(self.project_id),
            since=optional_instant(self.since, "since"),
            until=optional_instant(self.until, "until"),
        )


class EventDelivery(ResponseModel, frozen=True):
    webhook_id: UUID
    delivery_id: UUID
    status: DeliveryStatus
    reason: CancelReason | None

    @classmethod
    def of(cls, delivery: StoredDelivery) -> "EventDelivery":
        return cls(delivery.webhook_id, delivery.id, delivery.status, delivery.reason)


class Event(ResponseModel, frozen=True):
    """`body` is the exact body that receivers get; `reason` says why no endpoint got it."""

    id: UUID
    type: EventTypeName
    created_at: Moment
    occurred_at: Moment
    project_id: UUID | None
    reason: SilenceReason | None
    body: Raw
    deliveries: list[EventDelivery]

    @classmethod
    def of(cls, view: EventView) -> "Event":
        event = view.event
        return cls(
            id=event.id,
            type=event.type,
            created_at=to_text(event.created_at),
            occurred_at=to_text(event.occurred_at),
            project_id=event.project_id,
            reason=event.reason,
            body=Raw(event.body),
            deliveries=[EventDelivery.of(delivery) for delivery in view.deliveries],
        )


class EventList(ResponseModel, frozen=True):
    data: list[Event]
    next_cursor: str | None
