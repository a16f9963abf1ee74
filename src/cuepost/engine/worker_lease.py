"""The name under which this process holds work, and everything that it holds.

A delivery is held once: `took` lets through only what this process does not hold already and is not
about to return.
"""

import logging
from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cuepost.ports.dispatch import Assignment, DeliveryQueue
from cuepost.ports.runtime import Clock, IdSource

log = logging.getLogger("cuepost.engine")

HEARTBEATS_PER_LEASE = 3
LONG_AGO = datetime.min.replace(tzinfo=UTC)


class WorkerLease:
    def __init__(self, clock: Clock, ids: IdSource, length: timedelta) -> None:
        self._clock = clock
        self._ids = ids
        self._length = length
        self._until = LONG_AGO
        self._known: dict[UUID, Assignment] = {}
        self._strange: set[UUID] = set()
        self._looked_for_strays = LONG_AGO
        self._unwanted: dict[UUID, datetime | None] = {}
        self._disowned: set[UUID] = set()
        self.worker = ids(clock.now())

    @property
    def is_held(self) -> bool:
        """Once it has run out it never comes back: others may have the work by now."""
        if self._clock.now() >= self._until:
            self._until = LONG_AGO
        return self._until is not LONG_AGO

    @property
    def heartbeat_seconds(self) -> float:
        return self._length.total_seconds() / HEARTBEATS_PER_LEASE

    @property
    def has_unwanted(self) -> bool:
        return bool(self._unwanted)

    def took_over(self, committed: Iterable[Assignment]) -> list[Assignment]:
        """Those of a booking that are to be sent from here.

        An answer that comes very late may be about a delivery that was given up as orphaned and is
        back in the queue.
        """
        return self.took(each for each in committed if each.delivery_id not in self._disowned)

    def took(self, assignments: Iterable[Assignment]) -> list[Assignment]:
        """Those of them that are to be sent from here."""
        accepted = [each for each in assignments if self._may_hold(each)]
        for each in accepted:
            self._known[each.delivery_id] = each
            self._strange.discard(each.delivery_id)
            self._disowned.discard(each.delivery_id)
        return accepted

    def _may_hold(self, assignment: Assignment) -> bool:
        if assignment.delivery_id in self._unwanted:
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

    def give_back(self, assignments: Iterable[Assignment], due_at: datetime | None = None) -> None:
        """They are not going to be sent now; the store hears of it at the next occasion."""
        for each in assignments:
            if self._known.get(each.delivery_id) is each:
                self._unwanted[each.delivery_id] = due_at

    def start_anew(self) -> UUID:
        """Under a new name, since the old one's work may be with others; that old name."""
        old, self.worker = self.worker, self._ids(self._clock.now())
        self._known.clear()
        self._strange.clear()
        self._unwanted.clear()
        self._disowned.clear()
        return old

    async def begin(self, queue: DeliveryQueue, now: datetime) -> None:
        await queue.enlist(self.worker, now + self._length)

    def begun(self, now: datetime) -> None:
        self._until = now + self._length

    async def renew(self, queue: DeliveryQueue, now: datetime) -> bool:
        """True when it still is this process's, and what is leased is known here as well."""
        if not await queue.stay(self.worker, now + self._length):
            return False
        since, heartbeat = self._looked_for_strays, self._length / HEARTBEATS_PER_LEASE
        # Where the clock was set back, nobody knows for how long they were not looked for.
        if not since <= now < since + heartbeat:
            self._looked_for_strays = now
            self._look_for_strays(await queue.leased(self.worker))
        return True

    def renewed(self, worker: UUID, now: datetime, is_mine: bool) -> None:
        if worker == self.worker and self.is_held:
            self._until = now + self._length if is_mine else LONG_AGO

    async def return_unwanted(self, queue: DeliveryQueue, now: datetime) -> Collection[UUID]:
        """Those that were unwanted when it began; meanwhile there may be more."""
        unwanted = dict(self._unwanted)
        by_time: dict[datetime | None, list[UUID]] = {}
        for delivery_id, due_at in unwanted.items():
            by_time.setdefault(due_at, []).append(delivery_id)
        for due_at, delivery_ids in by_time.items():
            await queue.put_back(self.worker, delivery_ids, now, due_at)
        return unwanted

    def returned(self, delivery_ids: Iterable[UUID]) -> None:
        for delivery_id in delivery_ids:
            if self._known.pop(delivery_id, None) is None:
                self._disowned.add(delivery_id)
            self._unwanted.pop(delivery_id, None)

    def _look_for_strays(self, leased: Collection[UUID]) -> None:
        """Leased at two looks and unknown here ever since: a commit whose answer was lost.

        Between two looks there is time for an answer that is only late. What was held here in the
        meantime starts over, because the second look may see another lease than the first.
        """
        strange = {each for each in leased if each not in self._known}
        for stray in strange & self._strange:
            self._unwanted[stray] = None
        self._strange = strange
