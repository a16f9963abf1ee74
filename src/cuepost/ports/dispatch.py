"""The queue as the engine sees it: leases, assignments, and what came of them."""

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
"""The number of an endpoint: its deliveries wait in one lane."""
BEGINNING: Lane = 0
DeliveryKey: TypeAlias = tuple[int, UUID]
"""The number of the account, and the id of the delivery."""
_GOLDEN_RATIO = 0.6180339887498949


@dataclass(frozen=True, slots=True)
class Share:
    """The lanes of one of several living workers: every lane is in the share of exactly one.

    Multiples of the golden ratio are spread evenly between 0 and 1, and so are those of every
    second or every tenth lane: workers have about the same number of lanes, whichever are busy.
    """

    rank: int = 0
    workers: int = 1

    def has(self, lane: Lane) -> bool:
        return int(self.workers * (lane * _GOLDEN_RATIO % 1.0)) == self.rank


@dataclass(frozen=True, slots=True)
class Target:
    """An endpoint: where to, and the secrets that are live, the newest first."""

    account_id: UUID
    webhook_id: UUID
    url: str
    secrets: tuple[StoredSecret, ...]


@immutable
class Assignment:
    """One attempt that this worker has to make; not after `access_until`, where that is known."""

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
    """What a worker asks for: at most `room` assignments, and of each lane `room_of` it.

    `woken` are endpoints that are believed to have work; `behind` is where the full scan among
    all endpoints goes on, and without it only the woken are looked at. Lanes outside `share` are
    left to other workers. `idle` are lanes that the worker gives up, unless there is something for
    it in them. `alone` says that there is no other worker, so that lanes need no holding.
    """

    worker: UUID
    room: int
    room_of: Callable[[Lane], int]
    woken: Collection[Lane] = ()
    behind: Lane | None = BEGINNING
    idle: Collection[Lane] = ()
    share: Share = Share()
    alone: bool = False


@dataclass(frozen=True, slots=True)
class ScanProgress:
    """How far a full scan among all endpoints got, and when the next delivery is due."""

    reached: Lane
    next_due: datetime | None


@dataclass(frozen=True, slots=True)
class Claimed:
    """`held` are lanes that are the worker's now; of those `looked_at`, `more` have work left."""

    assignments: Sequence[Assignment]
    held: frozenset[Lane]
    looked_at: frozenset[Lane]
    more: frozenset[Lane]
    scan: ScanProgress | None


class DeliveryQueue(Protocol):
    """One worker at a time sends to an endpoint: it holds the endpoint's lane."""

    async def time(self, here: datetime) -> datetime:
        """By the clock that all workers share: the database's, or `here` if this is the only one.

        Whether a worker is alive is judged by it. Two machines may not agree on the time.
        """
        ...

    async def register_worker(self, worker: UUID, until: datetime) -> None:
        """Announce a new worker."""
        ...

    async def renew_lease(self, worker: UUID, until: datetime) -> bool:
        """Say that a worker still lives; False when it was dismissed meanwhile."""
        ...

    async def leave(self, worker: UUID, busy: Collection[Lane]) -> None:
        """The worker keeps these lanes until its attempts have ended; others get all the rest."""
        ...

    async def remove_worker(self, worker: UUID, now: datetime) -> None:
        """Give back every lane and every assignment of that worker, as interrupted attempts."""
        ...

    async def remove_dead_workers(self, now: datetime) -> int:
        """Dismiss workers that have not been heard of; how many they were."""
        ...

    async def remove_all_workers(self) -> None:
        """At the start of the only worker: whoever was here before counts as dead from now on."""
        ...

    async def leased(self, worker: UUID) -> Collection[UUID]:
        """The deliveries that wait for a result of that worker."""
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
        """Give back some assignments, due at once or at that time; stopped ones end here.

        Of those that may have been sent an interrupted attempt is kept.
        """
        ...

    async def claim(self, wanted: Claim, now: datetime) -> Claimed: ...

    async def accept(
        self, worker: UUID, opened: Collection[Lane], closed: Collection[Lane]
    ) -> None:
        """From now on what is booked for opened lanes is leased to their worker at once."""
        ...

    async def handed_over(
        self, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
    ) -> Sequence[tuple[Assignment, bool]]:
        """What was leased to the worker when it was booked, each with whether it may be sent."""
        ...

    async def overdue(self, worker: UUID, before: datetime) -> Collection[Lane]:
        """Lanes in which something has been due since before then, and that no other worker holds.

        They are those of the few deliveries that have been due for longest.
        """
        ...

    async def live_workers(self, now: datetime) -> Sequence[UUID]:
        """The workers among which lanes are shared, in the order of their ids.

        Their leases have not run out, and they are not leaving.
        """
        ...


class Handover(Protocol):
    """The straight way: what a process commits it may send itself, without asking the queue."""

    def reserve(self, lane: Lane) -> UUID | None:
        """The worker under whose lease one delivery is to be queued in this lane, or None."""
        ...

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        """They are committed, under the lease of that worker, which was reserved for them.

        What is known of their endpoints is as of that instant.
        """
        ...

    def give_back(self, lanes: Sequence[Lane]) -> None:
        """One reservation in each of these lanes is not needed: the transaction was rolled back."""
        ...

    def reaches(self, worker: UUID) -> bool:
        """Whether deliveries can be handed over to that worker, of another process."""
        ...

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        """They are committed under the lease of that worker, which can be reached."""
        ...

    def work_for(self, lanes: Collection[Lane]) -> None:
        """Something waits in these lanes of the queue."""
        ...


class Outcomes(Protocol):
    async def record(self, worker: UUID, results: Sequence[Result], now: datetime) -> int:
        """Write attempts, and moves of deliveries that nobody has taken over; how many had been.

        Those are kept as superseded attempts. What is on record already is not written again.
        """
        ...
