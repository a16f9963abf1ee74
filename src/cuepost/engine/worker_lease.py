"""The name under which this process holds work, and everything that it holds.

A delivery is held once: `took` lets through only what this process does not hold already and is not
about to return.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import inf
from uuid import UUID

from cuepost.ports.dispatch import Assignment, DeliveryQueue
from cuepost.ports.store import Store, StoreUnavailable
from cuepost.ports.system import Clock, IdSource
from cuepost.tuning import HEARTBEATS_PER_LEASE

log = logging.getLogger("cuepost.engine")

# Where nobody else can take anything over, a stall of whatever length changes nothing.
ENDLESS = timedelta(days=36_500)
LONG_AGO = -inf
CLOCK_NOTICED = timedelta(seconds=1)
# Receivers refuse what is off by five minutes.
CLOCK_TOLERATED = timedelta(minutes=2)


class ClockIsOff(StoreUnavailable):
    def __init__(self, ahead: timedelta) -> None:
        side = "ahead of" if ahead > timedelta(0) else "behind"
        off = abs(ahead).total_seconds()
        super().__init__(f"this machine's clock is {off:.0f} s {side} the database's; set it")


@dataclass(frozen=True, slots=True)
class _Return:
    """How a delivery goes back to the queue: due when, and whether its request may be out."""

    due_at: datetime | None = None
    may_be_sent: bool = False


class WorkerLease:
    def __init__(self, clock: Clock, ids: IdSource, length: timedelta) -> None:
        self._clock = clock
        self._ids = ids
        self._length = length
        self._until = LONG_AGO
        self.is_registered = False
        self.clock_ahead = self._noted_ahead = timedelta(0)
        self._known: dict[UUID, Assignment] = {}
        self._unknown: set[UUID] = set()
        self._looked_for_orphans = LONG_AGO
        self._to_release: dict[UUID, _Return] = {}
        self._disowned: set[UUID] = set()
        self.worker = ids(clock.now())

    @property
    def is_held(self) -> bool:
        """Once it has run out only the store can say whether others have the work by now.

        It runs from before the store was asked, so that it ends here before it does there.
        """
        if self._clock.monotonic() >= self._until:
            self._until = LONG_AGO
        return self._until > LONG_AGO

    @property
    def heartbeat_seconds(self) -> float:
        return (self._length / HEARTBEATS_PER_LEASE).total_seconds()

    @property
    def has_releases(self) -> bool:
        return bool(self._to_release)

    def not_disowned(self, committed: Iterable[Assignment]) -> list[Assignment]:
        """Of a booking what was not given up as orphaned, because its answer came very late."""
        return [each for each in committed if each.delivery_id not in self._disowned]

    def took(self, assignments: Iterable[Assignment]) -> list[Assignment]:
        """Those of them that are to be sent from here."""
        accepted = [each for each in assignments if self._may_hold(each)]
        for each in accepted:
            self._known[each.delivery_id] = each
            self._unknown.discard(each.delivery_id)
            self._disowned.discard(each.delivery_id)
        return accepted

    def _may_hold(self, assignment: Assignment) -> bool:
        if assignment.delivery_id in self._to_release:
            return False
        known = self._known.get(assignment.delivery_id)
        if known is None or (known.budget, known.number) != (assignment.budget, assignment.number):
            return True
        log.error("event=assignment_held_twice delivery=%s", assignment.delivery_id)
        return False

    def recorded(self, assignments: Iterable[Assignment]) -> None:
        for each in assignments:
            if self._known.get(each.delivery_id) is each:
                del self._known[each.delivery_id]

    def give_back(self, assignments: Iterable[Assignment]) -> None:
        """They are not going to be sent now; the store hears of it at the next occasion."""
        self._return(assignments, _Return())

    def postpone(self, assignment: Assignment, due_at: datetime) -> None:
        """Its request may have been sent, but nothing can be said of what came of it."""
        self._return([assignment], _Return(due_at, may_be_sent=True))

    def _return(self, assignments: Iterable[Assignment], how: _Return) -> None:
        for each in assignments:
            if self._known.get(each.delivery_id) is each:
                self._to_release[each.delivery_id] = how

    def start_over(self) -> UUID:
        """Under a new name, since the old one's work may be with others; that old name."""
        old, self.worker = self.worker, self._ids(self._clock.now())
        self.is_registered = False
        self._known.clear()
        self._unknown.clear()
        self._to_release.clear()
        self._disowned.clear()
        return old

    @property
    def now(self) -> datetime:
        """By the clock that all workers share, as far as this machine's is noticeably off."""
        return self._clock.now() - self._noted_ahead

    async def time(self, queue: DeliveryQueue) -> datetime:
        """By the clock that all workers share; how far this machine's is off is noted.

        Raises ClockIsOff where deliveries would come too early or too late by minutes, and their
        signatures be refused as too old or from the future.
        """
        asked = self._clock.now()
        shared = await queue.time(asked)
        # It was told somewhen between asking and now.
        ahead = asked + (self._clock.now() - asked) / 2 - shared
        if abs(ahead - self._noted_ahead) >= CLOCK_NOTICED:
            log.warning("event=clock_is_off seconds_ahead=%.1f", ahead.total_seconds())
            self._noted_ahead = ahead
        self.clock_ahead = ahead
        if abs(ahead) > CLOCK_TOLERATED:
            raise ClockIsOff(ahead)
        return shared

    async def begin(self, queue: DeliveryQueue, now: datetime) -> None:
        await queue.register_worker(self.worker, now + self._length)

    def begun(self, asked_at: float) -> None:
        self.is_registered = True
        self._run_from(asked_at)

    async def resume(self, store: Store) -> bool:
        """After it has run out: True when nobody has noticed, so that nothing was taken over."""
        if not self.is_registered:
            return False
        asked_at, worker = self._clock.monotonic(), self.worker
        async with store.transaction() as transaction:
            now = await self.time(transaction.queue)
            is_mine = await transaction.queue.renew_lease(worker, now + self._length)
        self.renewed(worker, asked_at, is_mine)
        return is_mine

    async def renew(self, queue: DeliveryQueue, now: datetime) -> bool:
        """True when it still is this process's, and what is leased is known here as well."""
        if not self.is_registered or not await queue.renew_lease(self.worker, now + self._length):
            return False
        looked_at = self._clock.monotonic()
        if looked_at >= self._looked_for_orphans + self.heartbeat_seconds:
            self._looked_for_orphans = looked_at
            self._look_for_orphans(await queue.leased(self.worker))
        return True

    def renewed(self, worker: UUID, asked_at: float, is_mine: bool) -> None:
        if worker == self.worker:
            self.is_registered = is_mine
            self._until = LONG_AGO
            if is_mine:
                self._run_from(asked_at)

    def _run_from(self, asked_at: float) -> None:
        self._until = asked_at + self._length.total_seconds()

    async def release_returned(self, queue: DeliveryQueue, now: datetime) -> Collection[UUID]:
        """Those that were to_release when it began; meanwhile there may be more."""
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
                self._disowned.add(delivery_id)
            self._to_release.pop(delivery_id, None)

    def _look_for_orphans(self, leased: Collection[UUID]) -> None:
        """Leased at two looks and unknown here ever since: a commit whose answer was lost.

        Between two looks there is time for an answer that is only late. What was held here in the
        meantime starts over, because the second look may see another lease than the first.
        """
        unknown = {each for each in leased if each not in self._known}
        for orphan in unknown & self._unknown:
            self._to_release[orphan] = _Return()
        self._unknown = unknown
