"""Deliveries with and without their attempts, and filters for lists."""

from typing import Annotated
from uuid import UUID

from msgspec import UNSET, Meta, Raw, UnsetType

from cuepost.application.browse_history import DeliveryDetail as FoundDetail
from cuepost.domain.attempt import Attempt as MadeAttempt
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.domain.delivery import Delivery as StoredDelivery
from cuepost.domain.instants import to_text
from cuepost.interfaces.wire_models.attempts import NEWEST_ATTEMPTS, Attempt, Budget, LastAttempt
from cuepost.interfaces.wire_models.event_types import EventTypeName, known_type
from cuepost.interfaces.wire_models.paging import PageQuery
from cuepost.interfaces.wire_models.shapes import (
    Moment,
    ResponseModel,
    Time,
    given,
    moment,
    optional_instant,
)
from cuepost.ports.history import DeliveryFilter

AttemptCount = Annotated[int, Meta(ge=0, description="The number of attempts in all budgets.")]

IncludeDelivered = Annotated[
    bool,
    Meta(description="`failed` excludes deliveries that have a `deliveredAt`; true includes them."),
]


class DeliveryQuery(PageQuery, frozen=True):
    """Deliveries created at or after `since` and before `until`."""

    status: DeliveryStatus | UnsetType = UNSET
    type: EventTypeName | UnsetType = UNSET
    project_id: UUID | UnsetType = UNSET
    event_id: UUID | UnsetType = UNSET
    since: Time | UnsetType = UNSET
    until: Time | UnsetType = UNSET
    include_delivered: IncludeDelivered = False

    def chosen(self, webhook_id: UUID | None) -> DeliveryFilter:
        return DeliveryFilter(
            webhook_id=webhook_id,
            status=given(self.status),
            event_type=known_type(given(self.type)),
            project_id=given(self.project_id),
            event_id=given(self.event_id),
            since=optional_instant(self.since, "since"),
            until=optional_instant(self.until, "until"),
            include_delivered=self.include_delivered,
        )


class Delivery(ResponseModel, frozen=True):
    """One event sent to one endpoint; `reason` says why it was cancelled.

    `deliveredAt` is the first acknowledgement; it is kept when a later retry fails.
    """

    id: UUID
    webhook_id: UUID
    event_id: UUID
    event_type: EventTypeName
    project_id: UUID | None
    status: DeliveryStatus
    reason: CancelReason | None
    attempt_count: AttemptCount
    budget: Budget
    next_attempt_at: Moment | None
    created_at: Moment
    finished_at: Moment | None
    delivered_at: Moment | None
    last_attempt: LastAttempt | None

    @classmethod
    def of(cls, delivery: StoredDelivery, last_attempt: MadeAttempt | None = None) -> "Delivery":
        return cls(
            id=delivery.id,
            webhook_id=delivery.webhook_id,
            event_id=delivery.event_id,
            event_type=delivery.event_type,
            project_id=delivery.project_id,
            status=delivery.status,
            reason=delivery.reason,
            attempt_count=delivery.attempt_count,
            budget=delivery.budget,
            next_attempt_at=moment(delivery.next_attempt_at),
            created_at=to_text(delivery.created_at),
            finished_at=moment(delivery.finished_at),
            delivered_at=moment(delivery.delivered_at),
            last_attempt=LastAttempt.of(last_attempt) if last_attempt else None,
        )


class DeliveryList(ResponseModel, frozen=True):
    data: list[Delivery]
    next_cursor: str | None


class DeliveryDetail(ResponseModel, frozen=True):
    """A delivery with the exact body of its event and every attempt."""

    id: UUID
    webhook_id: UUID
    event_id: UUID
    event_type: EventTypeName
    project_id: UUID | None
    status: DeliveryStatus
    reason: CancelReason | None
    attempt_count: AttemptCount
    budget: Budget
    next_attempt_at: Moment | None
    created_at: Moment
    finished_at: Moment | None
    delivered_at: Moment | None
    last_attempt: LastAttempt | None
    event: Raw
    attempts: Annotated[list[Attempt], NEWEST_ATTEMPTS]

    @classmethod
    def of(cls, detail: FoundDetail) -> "DeliveryDetail":
        shown = Delivery.of(detail.delivery, detail.last_attempt)
        return cls(
            event=Raw(detail.event.body),
            attempts=[Attempt.of(attempt) for attempt in detail.attempts],
            **{name: getattr(shown, name) for name in shown.__struct_fields__},
        )
