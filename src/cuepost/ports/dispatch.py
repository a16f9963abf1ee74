"""The queue as the engine sees it: leases, assignments and their results."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, TypeAlias
from uuid import UUID

from cuepost.domain.attempt import Attempt
from cuepost.domain.delivery import CancelReason, DeliveryStatus, Trigger
from cuepost.domain.endpoint import StoredSecret
from cuepost.domain.immutable import immutable

Lane: TypeAlias = int
"""The number of an endpoint; its deliveries form one lane."""
BEGINNING: Lane = 0
DeliveryKey: TypeAlias = tuple[int, UUID]
"""The number of the account, and the id of the delivery."""
_GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Share:
    """The lanes of one of several live workers: every lane is in the share of exactly one.

    Multiples of the golden ratio are spread evenly between 0 and 1, also for only every second or
    every tenth lane. So workers have about the same number of lanes, whichever lanes are busy.
    """

    rank: int = 0
    workers: int = 1

    def has(self, lane: Lane) -> bool:
        return int(self.workers * (lane * _GOLDEN_RATIO % 1.0)) == self.rank


@immutable
class Target:
    """Where an endpoint's deliveries go, and its live secrets, the newest first."""

    account_id: UUID
    webhook_id: UUID
    url: str
    secrets: tuple[StoredSecret, ...]


@immutable
class Assignment:
    """One attempt that this worker has to make, before `access_until` if that is set."""

    account: int
    delivery_id: UUID
    lane: Lane
    event_id: UUID
    event_type: str
    project_id: UUID | None
    trigger: Trigger
    budget: int
    number: int
    attempt_count: int
    body: bytes
    target: Target
    access_until: datetime | None = None
    delivered_at: datetime | None = None

    @property
    def account_id(self) -> UUID:
        return self.target.account_id

    @property
    def webhook_id(self) -> UUID:
        return self.target.webhook_id


@immutable
class NextStep:
    """What an attempt means for its delivery: ended, or due again."""

    status: DeliveryStatus
    due_at: datetime | None = None
    reason: CancelReason | None = None


@immutable
class Result:
    assignment: Assignment
    attempt: Attempt
    next_step: NextStep


@dataclass(frozen=True, slots=True)
class Claim:
    """What a worker asks for: at most `room` assignments, at most `room_of(lane)` of each lane.

    `woken` are endpoints that may have work. `scan_after` is the lane after which the full scan
    continues; if it is None, only the woken endpoints are examined. Lanes outside `share` are left
    to other workers; without a share there is no other worker, so lanes need not be held. `idle`
    are lanes that the worker releases unless they have work.
    """

    worker: UUID
    room: int
    room_of: Callable[[Lane], int]
    woken: Collection[Lane] = ()
    scan_after: Lane | None = BEGINNING
    idle: Collection[Lane] = ()
    share: Share | None = None


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """The lane that a full scan has reached, and when the next delivery is due."""

    reached: Lane
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """`held` lanes belong to the worker now; of the `examined` lanes, `more` have work left."""

    assignments: Sequence[Assignment]
    held: frozenset[Lane]
    examined: frozenset[Lane]
    more: frozenset[Lane]
    scan: ScanProgress | None


class DeliveryQueue(Protocol):
    """One worker at a time sends to an endpoint: the one that holds its lane."""

    async def time(self, here: datetime) -> datetime:
        """The clock that all workers share: the database's, or `here` if this worker is alone.

        Leases expire by this clock, because the clocks of two machines may differ.
        """
        ...

    async def register_worker(self, worker: UUID, until: datetime) -> None:
        """Add a worker, with a lease until then."""
        ...

    async def renew_lease(self, worker: UUID, until: datetime) -> bool:
        """Extend the lease of a worker; return False if the worker was removed."""
        ...

    async def leave(self, worker: UUID, busy: Collection[Lane]) -> None:
        """Release all lanes of a worker that is stopping, except the busy ones."""
        ...

    async def remove_worker(self, worker: UUID, now: datetime) -> None:
        """Release what the worker holds; each of its deliveries gets an interrupted attempt."""
        ...

    async def remove_dead_workers(self, now: datetime) -> int:
        """Remove the workers whose lease has expired; return how many there were."""
        ...

    async def remove_all_workers(self) -> None:
        """For the start of a worker that is alone: all earlier workers count as dead."""
        ...

    async def leased(self, worker: UUID) -> Collection[UUID]:
        """The deliveries that are leased to the worker."""
        ...

    async def put_back(
        self,
        worker: UUID,
        delivery_ids: Collection[UUID],
        now: datetime,
        due_at: datetime | None,
        *,
        may_be_sent: bool,
    ) -> None:
        """Release deliveries, due at once or at `due_at`; stopped ones are cancelled instead.

        With `may_be_sent` each gets an interrupted attempt.
        """
        ...

    async def claim(self, wanted: Claim, now: datetime) -> Claimed: ...

    async def accept(
        self, worker: UUID, opened: Collection[Lane], closed: Collection[Lane]
    ) -> None:
        """New deliveries in `opened` lanes are leased to the worker when they are committed."""
        ...

    async def handed_over(
        self, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
    ) -> Sequence[tuple[Assignment, bool]]:
        """The deliveries that were leased to the worker, each with whether it may be sent."""
        ...

    async def overdue(self, worker: UUID, before: datetime) -> Collection[Lane]:
        """Lanes with deliveries that were due before then, unless another worker holds the lane.

        Only the deliveries that have been due for longest are examined.
        """
        ...

    async def live_workers(self, now: datetime) -> Sequence[UUID]:
        """The workers that share the lanes, in the order of their ids.

        Their leases have not expired, and they are not stopping.
        """
        ...


class Handover(Protocol):
    """Gives committed deliveries to the worker that holds their lane, without a claim."""

    def reserve(self, lane: Lane) -> UUID | None:
        """Reserve room for one delivery in the lane; return the worker to lease it to, or None."""
        ...

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        """Deliveries that were committed with a lease of that worker, after `reserve`.

        Their endpoints were read at `as_of`.
        """
        ...

    def give_back(self, lanes: Sequence[Lane]) -> None:
        """Cancel one reservation in each of these lanes, after a rollback."""
        ...

    def reaches(self, worker: UUID) -> bool:
        """Whether deliveries can be handed over to that worker of another process."""
        ...

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        """Deliveries that were committed with a lease of that worker of another process."""
        ...

    def work_for(self, lanes: Collection[Lane]) -> None:
        """Wake the worker for these lanes, which have deliveries in the queue."""
        ...


class Outcomes(Protocol):
    async def record(self, worker: UUID, results: Sequence[Result], now: datetime) -> int:
        """Write attempts, and the next steps of deliveries that are still leased to the worker.

        Attempts of other deliveries are kept as superseded; return how many there were. What is
        stored already is not written again.
        """
        ...
