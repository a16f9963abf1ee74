"""A delivery: one event on its way to one endpoint, its statuses and their transitions."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuepost.domain.errors import DeliveryInProgress
from cuepost.domain.immutable import immutable


class DeliveryStatus(StrEnum):
    PENDING = "pending"
    DELIVERING = "delivering"
    RETRYING = "retrying"
    DELIVERED = "delivered"
    FAILED = "failed"
    CANCELLED = "cancelled"


class TransitionCause(StrEnum):
    CLAIMED = "claimed"
    RELEASED_BEFORE_FIRST_ATTEMPT = "released before its first attempt"
    RELEASED_BETWEEN_ATTEMPTS = "released between attempts"
    SUCCEEDED = "receiver answered 2xx"
    ATTEMPT_FAILED = "attempt failed"
    BUDGET_SPENT = "last attempt failed"
    STOPPED = "stopped"
    SENT_AGAIN = "sent again by hand"


class CancelReason(StrEnum):
    ENDPOINT_DISABLED = "endpoint_disabled"
    PROJECT_DELETED = "project_deleted"
    PROJECT_ACCESS_EXPIRED = "project_access_expired"
    ACCESS_CLOSED = "access_closed"


class Trigger(StrEnum):
    AUTOMATIC = "automatic"
    MANUAL = "manual"
    TEST = "test"


_S, _C = DeliveryStatus, TransitionCause
TRANSITIONS: Mapping[tuple[DeliveryStatus, TransitionCause], DeliveryStatus] = {
    (_S.PENDING, _C.CLAIMED): _S.DELIVERING,
    (_S.RETRYING, _C.CLAIMED): _S.DELIVERING,
    (_S.DELIVERING, _C.RELEASED_BEFORE_FIRST_ATTEMPT): _S.PENDING,
    (_S.DELIVERING, _C.RELEASED_BETWEEN_ATTEMPTS): _S.RETRYING,
    (_S.DELIVERING, _C.SUCCEEDED): _S.DELIVERED,
    (_S.DELIVERING, _C.ATTEMPT_FAILED): _S.RETRYING,
    (_S.DELIVERING, _C.BUDGET_SPENT): _S.FAILED,
    (_S.PENDING, _C.STOPPED): _S.CANCELLED,
    (_S.RETRYING, _C.STOPPED): _S.CANCELLED,
    (_S.DELIVERING, _C.STOPPED): _S.CANCELLED,
    (_S.DELIVERED, _C.SENT_AGAIN): _S.PENDING,
    (_S.FAILED, _C.SENT_AGAIN): _S.PENDING,
    (_S.CANCELLED, _C.SENT_AGAIN): _S.PENDING,
}

LIVE = (_S.PENDING, _S.DELIVERING, _S.RETRYING)
FINAL = (_S.DELIVERED, _S.FAILED, _S.CANCELLED)


class IllegalDeliveryTransition(Exception):
    """A bug: the state machine has no such transition."""


def after(status: DeliveryStatus, cause: TransitionCause) -> DeliveryStatus:
    try:
        return TRANSITIONS[status, cause]
    except KeyError:
        raise IllegalDeliveryTransition(f"{status} has no transition for '{cause}'") from None


@immutable
class Delivery:
    """`budget` is the number of the current budget: 1, and one more for each manual retry.

    `delivered_at` is the time of the first acknowledgement; later retries do not change it.
    """

    account_id: UUID
    id: UUID
    webhook_id: UUID
    event_id: UUID
    event_type: str
    project_id: UUID | None
    trigger: Trigger
    status: DeliveryStatus
    created_at: datetime
    reason: CancelReason | None = None
    attempt_count: int = 0
    budget: int = 1
    next_attempt_at: datetime | None = None
    finished_at: datetime | None = None
    delivered_at: datetime | None = None

    def require_final(self) -> "Delivery":
        if self.status not in FINAL:
            raise DeliveryInProgress(
                f"The delivery is {self.status}; it can be sent again once it has ended."
            )
        return self
