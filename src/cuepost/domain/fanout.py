"""One event, the account's endpoints: which deliveries follow."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus, Trigger
from cuepost.domain.event import Event


@dataclass(frozen=True, slots=True)
class Subscriber:
    """What fan-out has to know of an endpoint."""

    webhook_id: UUID
    events: frozenset[str]
    enabled: bool


class NewId(Protocol):
    def __call__(self, at: datetime) -> UUID: ...


def deliveries_of(event: Event, subscribers: Iterable[Subscriber], new_id: NewId) -> list[Delivery]:
    """One for each subscriber; a disabled one gets a cancelled record, so nothing vanishes."""
    return [
        delivery_to(subscriber.webhook_id, event, new_id, enabled=subscriber.enabled)
        for subscriber in subscribers
        if event.type in subscriber.events
    ]


def delivery_to(
    webhook_id: UUID,
    event: Event,
    new_id: NewId,
    *,
    enabled: bool = True,
    trigger: Trigger = Trigger.AUTOMATIC,
) -> Delivery:
    now = event.created_at
    return Delivery(
        account_id=event.account_id,
        id=new_id(now),
        webhook_id=webhook_id,
        event_id=event.id,
        event_type=event.type,
        project_id=event.project_id,
        trigger=trigger,
        status=DeliveryStatus.PENDING if enabled else DeliveryStatus.CANCELLED,
        reason=None if enabled else CancelReason.ENDPOINT_DISABLED,
        created_at=now,
        next_attempt_at=now if enabled else None,
        finished_at=None if enabled else now,
    )
