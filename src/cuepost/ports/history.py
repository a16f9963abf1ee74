"""Events, deliveries and attempts: what happened, and what is still to be sent."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.attempt import Attempt, Outcome
from cuepost.domain.bulk_retry import BulkRetry
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.domain.delivery_counts import Interval
from cuepost.domain.event import Event
from cuepost.ports.records import Page

# Manual retries are not limited, so a delivery can have any number of attempts.
MOST_ATTEMPTS = 100


@dataclass(frozen=True, slots=True)
class DeliveryFilter:
    """The status `failed` leaves out what was delivered earlier, unless `include_delivered`."""

    webhook_id: UUID | None = None
    status: DeliveryStatus | None = None
    event_type: str | None = None
    project_id: UUID | None = None
    event_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None
    include_delivered: bool = False


@dataclass(frozen=True, slots=True)
class AttemptFigures:
    """What charts and filters need of an attempt, without request and response."""

    delivery_id: UUID
    budget: int
    number: int
    outcome: Outcome
    status: int | None
    duration_ms: float


@dataclass(frozen=True, slots=True)
class EventFilter:
    event_type: str | None = None
    project_id: UUID | None = None
    since: datetime | None = None
    until: datetime | None = None


class Events(Protocol):
    async def add(self, events: Sequence[Event]) -> None: ...
    async def get(self, account_id: UUID, event_id: UUID) -> Event | None: ...
    async def page(self, account_id: UUID, chosen: EventFilter, page: Page) -> list[Event]: ...


class Deliveries(Protocol):
    async def add(self, deliveries: Sequence[Delivery]) -> None:
        """Store the deliveries, and queue those that have not ended."""
        ...

    async def get(self, account_id: UUID, delivery_id: UUID) -> Delivery | None: ...
    async def lock(self, account_id: UUID, delivery_id: UUID) -> Delivery | None: ...
    async def page(
        self, account_id: UUID, chosen: DeliveryFilter, page: Page
    ) -> list[Delivery]: ...
    async def of_events(
        self, account_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, list[Delivery]]: ...

    async def retrying(self, account_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, int]:
        """How many deliveries of each endpoint wait for another attempt."""
        ...

    async def stop_endpoint(
        self, account_id: UUID, webhook_id: UUID | None, reason: CancelReason, now: datetime
    ) -> None:
        """Cancel the waiting deliveries of one endpoint, or of all if `webhook_id` is None.

        An attempt in flight may finish, but no other follows.
        """
        ...

    async def stop_project(
        self, account_id: UUID, project_id: UUID, reason: CancelReason, now: datetime
    ) -> None: ...

    async def send_again(
        self, account_id: UUID, delivery_ids: Sequence[UUID], now: datetime
    ) -> int:
        """Start a new budget for those that have ended; return how many there were."""
        ...


class Attempts(Protocol):
    async def add(self, attempts: Sequence[Attempt]) -> None: ...
    async def of_delivery(self, account_id: UUID, delivery_id: UUID) -> list[Attempt]:
        """The newest MOST_ATTEMPTS, in the order in which they began."""
        ...

    async def last_of(self, account_id: UUID, delivery_ids: Sequence[UUID]) -> dict[UUID, Attempt]:
        """The last attempt of each delivery that counts, or the last of all if none counts."""
        ...

    async def figures_of(
        self, account_id: UUID, delivery_ids: Sequence[UUID]
    ) -> list[AttemptFigures]:
        """The attempts that count, by delivery, in the order in which they were made."""
        ...


@dataclass(frozen=True, slots=True)
class Bars:
    """Bars of `bar` minutes each, from `since` on: sums of intervals of `minutes` minutes."""

    since: datetime
    minutes: int
    bar: int


class DeliveryCounts(Protocol):
    """How many deliveries ended how, by the bar in which they began, in no order."""

    async def of_endpoints(
        self, account_id: UUID, webhook_ids: Sequence[UUID], bars: Bars
    ) -> dict[UUID, list[Interval]]: ...

    async def of_account(self, account_id: UUID, bars: Bars) -> list[Interval]:
        """Of all its endpoints together."""
        ...


class BulkRetries(Protocol):
    async def add(self, job: BulkRetry) -> None: ...
    async def get(self, account_id: UUID, webhook_id: UUID, job_id: UUID) -> BulkRetry | None: ...
    async def lock(self, account_id: UUID, job_id: UUID) -> BulkRetry | None: ...
    async def running(self, limit: int) -> list[BulkRetry]: ...
    async def save(self, job: BulkRetry) -> None: ...
    async def count_candidates(self, job: BulkRetry) -> int: ...
    async def next_candidates(self, job: BulkRetry, limit: int) -> list[Delivery]:
        """Ended deliveries that the job has not processed yet, oldest first."""
        ...
