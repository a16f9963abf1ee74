"""Converts between deliveries and attempts, and their rows.

The last counted attempt of an ended delivery is in the row of the delivery, others in `attempts`.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.records.parking import unparked
from cuepost.adapters.storage.row_writes import Row, inserted
from cuepost.domain.attempt import Attempt, Outcome, Timings, TlsFault, trigger_of
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.instants import instant_of


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


def live_row(delivery: Delivery, account: int, endpoint: int, worker: UUID | None) -> Row:
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


class AttemptRow(NamedTuple):
    """An attempt; in the row of an ended delivery, `trigger` is that of the delivery."""

    delivery_id: UUID
    budget: int
    trigger: Trigger
    number: int
    started_at: datetime
    duration_ms: float
    dns_ms: float | None
    connect_ms: float | None
    tls_ms: float | None
    first_byte_ms: float | None
    signed_with: str
    request_headers: bytes
    response_status: int | None
    response_headers: bytes
    response_body: bytes
    response_truncated: bool
    outcome: Outcome
    tls_fault: TlsFault | None
    url: str | None

    def attempt(self, account_id: UUID) -> Attempt:
        return Attempt(
            account_id=account_id,
            delivery_id=self.delivery_id,
            budget=self.budget,
            number=self.number,
            trigger=self.trigger,
            started_at=self.started_at,
            duration_ms=self.duration_ms,
            timings=Timings(self.dns_ms, self.connect_ms, self.tls_ms, self.first_byte_ms),
            # Hints from before revision 0006 end with base64 padding.
            signed_with=tuple(self.signed_with.replace("=", "").split()),
            request_headers=_headers(self.request_headers),
            response_status=self.response_status,
            response_headers=_headers(self.response_headers),
            response_body=self.response_body,
            response_truncated=bool(self.response_truncated),
            outcome=self.outcome,
            tls_fault=self.tls_fault,
            url=self.url,
        )


ATTEMPT_COLUMNS = AttemptRow._fields[3:]
ADD_ATTEMPTS = inserted(
    "attempts", "account", "delivery_id", "budget", "trigger", "held_by", *ATTEMPT_COLUMNS
)
_ENCODE = msgspec.json.Encoder().encode


def last_attempt(row: Sequence[Any]) -> AttemptRow:
    """The attempt in the columns of an ended delivery."""
    found = AttemptRow._make(row)
    return found._replace(trigger=trigger_of(found.trigger, found.number))


def attempt_values(attempt: Attempt) -> Row:
    """The values of the columns that both tables have, in the order of `ATTEMPT_COLUMNS`."""
    timings = attempt.timings
    return (
        attempt.number,
        attempt.started_at,
        attempt.duration_ms,
        timings.dns_ms,
        timings.connect_ms,
        timings.tls_ms,
        timings.first_byte_ms,
        " ".join(attempt.signed_with),
        _ENCODE(attempt.request_headers),
        attempt.response_status,
        _ENCODE(attempt.response_headers),
        attempt.response_body,
        attempt.response_truncated,
        attempt.outcome,
        attempt.tls_fault,
        attempt.url,
    )


def attempt_row(
    attempt: Attempt, account: int, *, number: int | None = None, held_by: UUID | None = None
) -> Row:
    """For `ADD_ATTEMPTS`; `number` overrides the attempt's own."""
    own, *others = attempt_values(attempt)
    return (
        account,
        attempt.delivery_id,
        attempt.budget,
        attempt.trigger,
        held_by,
        own if number is None else number,
        *others,
    )


def attempt_of_reopened(account: int, ended: Ended, values: Sequence[Any]) -> dict[str, Any]:
    """The attempt of a delivery that becomes live again; `values` are its `ATTEMPT_COLUMNS`."""
    attempt = dict(zip(ATTEMPT_COLUMNS, values, strict=True))
    return attempt | {
        "account": account,
        "delivery_id": ended.id,
        "budget": ended.budget,
        "trigger": trigger_of(ended.trigger, attempt["number"]),
        "held_by": None,
    }


def _headers(stored: bytes) -> tuple[tuple[str, str], ...]:
    return tuple((name, value) for name, value in msgspec.json.decode(stored))
