"""The id under which this worker holds deliveries, its lease, and the deliveries that it holds.

A delivery is held once: `took` accepts only deliveries that this worker does not hold already and
is not about to release.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import Assignment, DeliveryKey, DeliveryQueue, Result
from cuepost.ports.store import Store, StoreError, StoreUnavailable
from cuepost.ports.system import Clock, IdSource
from cuepost.tuning import HEARTBEATS_PER_LEASE

log = logging.getLogger("cuepost.engine")

# The lease of a worker that is alone: no other worker can take over, however long it is suspended.
ENDLESS = timedelta(days=36_500)
LONG_AGO = -inf
CLOCK_NOTICED = timedelta(seconds=1)
# Receivers refuse a timestamp that is off by five minutes.
CLOCK_TOLERATED = timedelta(minutes=2)


class ClockIsOff(StoreUnavailable):
    def __init__(self, ahead: timedelta) -> None:
        side = "ahead of" if ahead > timedelta(0) else "behind"
        off = abs(ahead).total_seconds()
        super().__init__(f"this machine's clock is {off:.0f} s {side} the database's; set it")


@dataclass(frozen=True, slots=True)
class _Return:
    """How a delivery is released: when it is due, and whether its request may have been sent."""

    due_at: datetime | None = None
    may_be_sent: bool = False


class WorkerLease:
    def __init__(self, clock: Clock, ids: IdSource, length: timedelta) -> None:
        self._clock = clock
        self._ids = ids
        self._length = length
        # When the lease expires, unless it is renewed. It is counted from before the call to the
        # store, so it expires here earlier than there. LONG_AGO: the store has no such worker.
        self.until = LONG_AGO
        self.clock_ahead = self._noted_ahead = timedelta(0)
        self._known: dict[UUID, Assignment] = {}
        # Leased to this worker by other processes, and not read yet; the first to be read first.
        self.expected: dict[UUID, DeliveryKey] = {}
        self._unknown: set[UUID] = set()
        self._looked_for_orphans = LONG_AGO
        self._to_release: dict[UUID, _Return] = {}
        # Released because the answer that would have brought them took so long.
        self.released_orphans: set[UUID] = set()
        self.worker = ids(clock.now())

    @property
    def is_held(self) -> bool:
        """Once the lease has expired, only the store knows whether another worker has the work."""
        return self._clock.monotonic() < self.until

    @property
    def is_registered(self) -> bool:
        return self.until != LONG_AGO

    @property
    def heartbeat_seconds(self) -> float:
        return (self._length / HEARTBEATS_PER_LEASE).total_seconds()

    @property
    def has_releases(self) -> bool:
        return bool(self._to_release)

    def took(self, assignments: Iterable[Assignment]) -> list[Assignment]:
        """Hold the assignments that this worker may send, and return them."""
        accepted = []
        for each in assignments:
            if each.delivery_id in self._to_release:
                continue
            known = self._known.get(each.delivery_id)
            if known and (known.budget, known.number) == (each.budget, each.number):
                log.error("event=assignment_held_twice delivery=%s", each.delivery_id)
                continue
            accepted.append(each)
            self._known[each.delivery_id] = each
            self._unknown.discard(each.delivery_id)
            self.released_orphans.discard(each.delivery_id)
        return accepted

    def recorded(self, results: Iterable[Result]) -> None:
        for each in results:
            delivery_id = each.assignment.delivery_id
            if self._known.get(delivery_id) is each.assignment:
                del self._known[delivery_id]

    def give_back(self, assignments: Iterable[Assignment]) -> None:
        """Mark assignments that are not sent now; the next claim releases them in the store."""
        self._return(assignments, _Return())

    def give_back_expected(self) -> None:
        """As `give_back`, for what was not read yet; what comes later is read and declined."""
        self._to_release.update(dict.fromkeys(self.expected, _Return()))
        self.expected.clear()

    def postpone(self, assignment: Assignment, due_at: datetime) -> None:
        """Mark an assignment whose request may have been sent with an unknown outcome."""
        self._return([assignment], _Return(due_at, may_be_sent=True))

    def _return(self, assignments: Iterable[Assignment], how: _Return) -> None:
        for each in assignments:
            if self._known.get(each.delivery_id) is each:
                self._to_release[each.delivery_id] = how

    def start_over(self) -> UUID:
        """Take a new worker id, because others may have the work of the old; return the old id."""
        old, self.worker = self.worker, self._ids(self._clock.now())
        self.until = LONG_AGO
        self._known.clear()
        self.expected.clear()
        self._unknown.clear()
        self._to_release.clear()
        self.released_orphans.clear()
        return old

    @property
    def now(self) -> datetime:
        """The time of the clock that all workers share, estimated by the last known offset."""
        return self._clock.now() - self._noted_ahead

    async def time(self, queue: DeliveryQueue) -> datetime:
        """Read the clock that all workers share, and note how far this machine's clock is off.

        Raises ClockIsOff if receivers would refuse signatures as too old or from the future.
        """
        asked = self._clock.now()
        shared = await queue.time(asked)
        # The store read its clock between the call and now; the middle is the best estimate.
        ahead = asked + (self._clock.now() - asked) / 2 - shared
        if abs(ahead - self._noted_ahead) >= CLOCK_NOTICED:
            log.warning("event=clock_is_off seconds_ahead=%.1f", ahead.total_seconds())
            self._noted_ahead = ahead
        self.clock_ahead = ahead
        if abs(ahead) > CLOCK_TOLERATED:
            raise ClockIsOff(ahead)
        return shared

    async def register(self, queue: DeliveryQueue) -> datetime:
        """Add this worker; return the time of the clock that all workers share."""
        shared = await self.time(queue)
        await queue.register_worker(self.worker, shared + self._length)
        return shared

    async def resume(self, store: Store) -> bool:
        """Renew an expired lease; return False if this worker was removed and its work taken."""
        if not self.is_registered:
            return False
        asked_at, worker = self._clock.monotonic(), self.worker
        async with store.transaction() as transaction:
            now = await self.time(transaction.queue)
            is_mine = await transaction.queue.renew_lease(worker, now + self._length)
        self.renewed(worker, asked_at, is_mine=is_mine)
        return is_mine

    async def renew(self, queue: DeliveryQueue, now: datetime) -> bool:
        """Renew the lease and look for orphaned leases; return False if this worker was removed."""
        if not self.is_registered or not await queue.renew_lease(self.worker, now + self._length):
            return False
        looked_at = self._clock.monotonic()
        if looked_at >= self._looked_for_orphans + self.heartbeat_seconds:
            self._looked_for_orphans = looked_at
            self._look_for_orphans(await queue.leased(self.worker))
        return True

    def renewed(self, worker: UUID, asked_at: float, *, is_mine: bool) -> None:
        """The store was asked then whether that worker still exists, or told that it does."""
        if worker == self.worker:
            self.until = asked_at + self._length.total_seconds() if is_mine else LONG_AGO

    async def end(self, store: Store) -> None:
        """Release what was not sent; what is still leased then counts as interrupted."""
        self.give_back_expected()
        now = self._clock.now()
        try:
            async with store.transaction() as transaction:
                await self.release_returned(transaction.queue, now)
                await transaction.queue.remove_worker(self.worker, now)
        except StoreError as error:
            log_store_error(log, "left_without_word", error, "leave")

    async def release_returned(self, queue: DeliveryQueue, now: datetime) -> Collection[UUID]:
        """Release the marked deliveries and return their ids; more may be marked by then."""
        to_release = dict(self._to_release)
        alike: dict[_Return, list[UUID]] = {}
        for delivery_id, how in to_release.items():
            alike.setdefault(how, []).append(delivery_id)
        for how, delivery_ids in alike.items():
            await queue.put_back(
                self.worker, delivery_ids, now, how.due_at, may_be_sent=how.may_be_sent
            )
        return to_release

    def returned(self, delivery_ids: Iterable[UUID]) -> None:
        for delivery_id in delivery_ids:
            if self._known.pop(delivery_id, None) is None:
                self.released_orphans.add(delivery_id)
            self._to_release.pop(delivery_id, None)

    def _look_for_orphans(self, leased: Collection[UUID]) -> None:
        """A delivery leased at two checks in a row and unknown here: its commit's answer was lost.

        The time between two checks is enough for an answer that is only late. A delivery that was
        held here in between is counted from the start, because its lease may be another one.
        """
        unknown = set(leased).difference(self._known, self.expected)
        for orphan in unknown & self._unknown:
            self._to_release[orphan] = _Return()
        self._unknown = unknown
