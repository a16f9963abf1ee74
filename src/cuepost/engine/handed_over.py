"""Takes deliveries that other processes committed for lanes of this worker, leased to it.

While memory is full, they wait as keys and are not read. Too many of them are read all the same, so
that their lanes stop accepting. A notification may be lost; the lease is then orphaned, and the
heartbeat finds it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.lanes import SharedLanes
from cuepost.engine.worker_lease import WorkerLease
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import Assignment, DeliveryKey
from cuepost.ports.store import Store, StoreError
from cuepost.ports.system import Clock
from cuepost.tuning import (
    HANDED_OVER_AT_ONCE,
    HANDED_OVER_WAITING,
    PAUSE_AFTER_FAILURE_SECONDS,
    PAUSE_WITH_FULL_MEMORY_SECONDS,
)

log = logging.getLogger("cuepost.engine")


class HandedOver:
    def __init__(
        self,
        store: Store,
        clock: Clock,
        *,
        lease: WorkerLease,
        board: LaneBoard,
        lanes: SharedLanes,
        intake: Intake,
        begin: Callable[[Sequence[Assignment], float], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._board = board
        self._lanes = lanes
        self._intake = intake
        self._begin = begin
        self._keys: list[DeliveryKey] = []
        self._has_keys = asyncio.Event()

    def add(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        if worker == self._lease.worker:
            self._keys += keys
            self._lease.expect(delivery_id for _, delivery_id in keys)
            self._has_keys.set()

    def leave(self) -> None:
        """Release what was not read yet; what comes from now on is read and declined."""
        self._lease.give_back_expected()
        self._keys.clear()
        self._has_keys.clear()

    async def run(self) -> None:
        while True:
            await self._has_keys.wait()
            keys = self._next()
            if not keys:
                await self._clock.wait(PAUSE_WITH_FULL_MEMORY_SECONDS)
                continue
            try:
                await self._take(keys)
            except StoreError as error:
                log_store_error(log, "handed_over_not_read", error, "hand-over", count=len(keys))
                self._keys[:0] = keys
                self._has_keys.set()
                await self._clock.wait(PAUSE_AFTER_FAILURE_SECONDS)
            else:
                self._lease.no_longer_expect(delivery_id for _, delivery_id in keys)

    def _next(self) -> Sequence[DeliveryKey]:
        """The keys for which memory has room, but not only a few of many; and those too many."""
        self._board.adjust_room()
        room, waiting = self._board.room, len(self._keys)
        if room < waiting and self._board.is_short_of_room:
            room = waiting - HANDED_OVER_WAITING
        count = max(0, min(room, HANDED_OVER_AT_ONCE))
        keys, self._keys = self._keys[:count], self._keys[count:]
        if not self._keys:
            self._has_keys.clear()
        return keys

    async def _take(self, keys: Sequence[DeliveryKey]) -> None:
        asked_at, worker = self._clock.monotonic(), self._lease.worker
        async with self._store.single_read() as transaction:
            found = await transaction.queue.handed_over(worker, keys, self._clock.now())
        # If this worker has a new id, the deliveries of the old one are with other workers.
        if worker != self._lease.worker or not self._lease.is_held:
            return
        taken, surplus = [], []
        for assignment, may_be_sent in found:
            if self._lease.was_released_as_orphan(assignment):
                continue
            lane = assignment.lane
            if may_be_sent and self._lanes.holds(lane) and self._board.reserve(lane):
                taken.append(assignment)
            else:
                surplus.append(assignment)
        if surplus:
            self._intake.decline(surplus)
        self._board.give_back([each.lane for each in taken])
        self._begin(taken, asked_at)
