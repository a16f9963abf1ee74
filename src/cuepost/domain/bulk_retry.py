"""A job that sends many ended deliveries again, step by step."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuepost.domain.delivery import DeliveryStatus


class BulkRetryState(StrEnum):
    RUNNING = "running"
    FINISHED = "finished"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class BulkRetry:
    """`position` is the last delivery that was processed; the next step continues after it.

    Failed deliveries that were delivered earlier are left out unless `include_delivered`.
    """

    account_id: UUID
    id: UUID
    webhook_id: UUID
    since: datetime
    until: datetime
    statuses: tuple[DeliveryStatus, ...]
    state: BulkRetryState
    count: int
    created_at: datetime
    retried: int = 0
    skipped: int = 0
    position: UUID | None = None
    finished_at: datetime | None = None
    include_delivered: bool = False
