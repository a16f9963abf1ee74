"""Converts between deliveries and their rows, live and ended."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.records.parking import unparked
from cuepost.adapters.storage.row_writes import inserted
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.ids import instant_of


class Ended(NamedTuple):
    """The columns of `deliveries`, without those of its attempt."""

    id: UUID
    endpoint: int
    event_id: UUID
    event_type: str
    project_id: UUID | None
    trigger: Trigger
    status: DeliveryStatus
    attempt_count: int
    budget: int
    delivered_at: datetime | None
    reason: CancelReason | None
    finished_at: datetime

    def delivery(self, account_id: UUID, webhook_of: Mapping[int, UUID]) -> Delivery:
        acknowledged_now = self.status is DeliveryStatus.DELIVERED
        return Delivery(
            account_id=account_id,
            id=self.id,
            webhook_id=webhook_of[self.endpoint],
            event_id=self.event_id,
            event_type=self.event_type,
            project_id=self.project_id,
            trigger=self.trigger,
            status=self.status,
            created_at=instant_of(self.id),
            reason=self.reason,
            attempt_count=self.attempt_count,
            budget=self.budget,
            finished_at=self.finished_at,
            delivered_at=self.delivered_at or (self.finished_at if acknowledged_now else None),
        )


class Live(NamedTuple):
    """The columns of `queue` that a delivery is made of."""

    id: UUID
    endpoint: int
    event_id: UUID
    event_type: str
    project_id: UUID | None
    trigger: Trigger
    status: DeliveryStatus
    attempt_count: int
    budget: int
    delivered_at: datetime | None
    due_at: datetime

    def delivery(self, account_id: UUID, webhook_of: Mapping[int, UUID]) -> Delivery:
        waits = self.status is not DeliveryStatus.DELIVERING
        return Delivery(
            account_id=account_id,
            id=self.id,
            webhook_id=webhook_of[self.endpoint],
            event_id=self.event_id,
            event_type=self.event_type,
            project_id=self.project_id,
            trigger=self.trigger,
            status=self.status,
            created_at=instant_of(self.id),
            attempt_count=self.attempt_count,
            budget=self.budget,
            next_attempt_at=unparked(self.due_at) if waits else None,
            delivered_at=self.delivered_at,
        )


# The key of both tables.
KEY = ("account", "id")
# The columns that are copied from `queue` to `deliveries` when a delivery ends.
KEPT = (
    "account",
    "id",
    "endpoint",
    "event_id",
    "event_type",
    "project_id",
    "trigger",
    "attempt_count",
    "budget",
    "delivered_at",
)
ADD_LIVE = inserted("queue", *KEPT, "status", "due_at", "attempts_made", "worker")


def ended_condition(status: DeliveryStatus, *, include_delivered: bool) -> str:
    """Excludes failed deliveries that were delivered before, unless `include_delivered`."""
    condition = f"deliveries.status = {STATUS[status]}"
    if status is DeliveryStatus.FAILED and not include_delivered:
        condition += " AND deliveries.delivered_at IS NULL"
    return condition


def newest_first(
    live: Sequence[Live], ended: Sequence[Ended], limit: int | None = None
) -> list[Live | Ended]:
    rows: list[Live | Ended] = [*live, *ended]
    return sorted(rows, key=lambda row: row.id, reverse=True)[:limit]


def live_row(
    delivery: Delivery, account: int, endpoint: int, worker: UUID | None
) -> tuple[Any, ...]:
    """For `ADD_LIVE`; no attempt of its budget was made yet."""
    assert delivery.next_attempt_at is not None
    return (
        account,
        delivery.id,
        endpoint,
        delivery.event_id,
        delivery.event_type,
        delivery.project_id,
        delivery.trigger,
        delivery.attempt_count,
        delivery.budget,
        delivery.delivered_at,
        delivery.status if worker is None else DeliveryStatus.DELIVERING,
        delivery.next_attempt_at,
        0,
        worker,
    )


def ended_row(delivery: Delivery, account: int, endpoint: int) -> dict[str, Any]:
    """The row of a delivery that ended without an attempt."""
    return {
        "account": account,
        "id": delivery.id,
        "endpoint": endpoint,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "project_id": delivery.project_id,
        "trigger": delivery.trigger,
        "status": delivery.status,
        "attempt_count": delivery.attempt_count,
        "budget": delivery.budget,
        "delivered_at": delivery.delivered_at,
        "reason": delivery.reason,
        "finished_at": delivery.finished_at,
    }
