"""The state of the whole service, for an operator: every read has a limit, whatever is stored."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.access import Account
from cuepost.domain.delivery_counts import Interval
from cuepost.domain.endpoint import Endpoint

COUNTED_AT_MOST = 10_000
"""Larger numbers of deliveries, lanes and accounts are not counted to the end."""


@dataclass(frozen=True, slots=True)
class CountedIntervals:
    """Of all accounts together, oldest first.

    `is_cut`: there were more rows than are read at once. The newest were read, so that intervals
    are missing, and the oldest one here may lack endpoints.
    """

    intervals: Sequence[Interval]
    is_cut: bool = False

    @property
    def whole(self) -> Sequence[Interval]:
        """Without the oldest one if it may lack endpoints, unless it is the only one."""
        return (self.intervals[1:] or self.intervals) if self.is_cut else self.intervals


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker with the lanes that it holds and the deliveries that are leased to it."""

    id: UUID
    alive_until: datetime
    leaving: bool
    lanes: int
    leased: int


@dataclass(frozen=True, slots=True)
class OldestDue:
    """The delivery that has been due for longest."""

    account_id: UUID
    account_name: str
    url: str
    due_at: datetime


@dataclass(frozen=True, slots=True)
class StoreState:
    """`revision` is that of the schema, `newest` that of this version."""

    engine: str
    size_bytes: int
    revision: str
    newest: str


@dataclass(frozen=True, slots=True)
class EndpointLine:
    """An endpoint with what its health follows from, and its deliveries of a day.

    `retrying` is 1 if any delivery waits for another attempt.
    """

    endpoint: Endpoint
    account_name: str
    retrying: int
    recent_failed: int
    delivered: int
    failed: int


class ServiceState(Protocol):
    async def counts(self, minutes: int, since: datetime) -> CountedIntervals: ...

    async def due(self, now: datetime) -> int:
        """How many deliveries are due; counting stops at a limit."""
        ...

    async def oldest_due(self) -> OldestDue | None: ...

    async def workers(self, limit: int) -> list[WorkerState]:
        """The oldest first."""
        ...

    async def store(self) -> StoreState: ...

    async def closed_accounts(self, limit: int) -> list[Account]:
        """Accounts without access to webhooks, the newest first."""
        ...

    async def failing(self, limit: int, recent: datetime, day: datetime) -> list[EndpointLine]:
        """Some of the endpoints with an open alert of failing, in no order.

        Failed deliveries are counted since `recent` for their health, and since `day`.
        """
        ...

    async def endpoints_of(
        self, account_ids: Sequence[UUID], limit: int, recent: datetime, day: datetime
    ) -> list[EndpointLine]:
        """The oldest first."""
        ...
