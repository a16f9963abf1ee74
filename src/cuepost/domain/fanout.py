"""Fan-out: the deliveries of one event to the endpoints of its account."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.event import Event


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What fan-out needs of an endpoint; `stopped` is the reason why it gets nothing now."""

    webhook_id: UUID
    events: frozenset[str]
    stopped: CancelReason | None = None


class NewId(Protocol):
    def __call__(self, at: datetime) -> UUID: ...


def deliveries_of(event: Event, subscribers: Iterable[Subscriber], new_id: NewId) -> list[Delivery]:
    """One delivery for each subscriber; if it is stopped, a cancelled one, for the history."""
    return [
        delivery_to(subscriber.webhook_id, event, new_id, stopped=subscriber.stopped)
        for subscriber in subscribers
        if event.type in subscriber.events
    ]


def delivery_to(
    webhook_id: UUID,
    event: Event,
    new_id: NewId,
    *,
    stopped: CancelReason | None = None,
    trigger: Trigger = Trigger.AUTOMATIC,
) -> Delivery:
    now = event.created_at
    # Positional arguments are faster, and this runs for every delivery.
    return Delivery(
        event.account_id,
        new_id(now),
        webhook_id,
        event.id,
        event.type,
        event.project_id,
        trigger,
        DeliveryStatus.CANCELLED if stopped else DeliveryStatus.PENDING,
        now,
        stopped,
        0,
        1,
        None if stopped else now,
        now if stopped else None,
    )
