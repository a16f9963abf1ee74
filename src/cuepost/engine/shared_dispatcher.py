"""One of several workers on PostgreSQL: it shares the lanes, and takes what others hand over."""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import Any
from uuid import UUID

from cuepost.engine.dispatcher import Dispatcher
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import DeliveryKey, Lane, Share
from cuepost.ports.store import StoreError
from cuepost.tuning import (
    HANDED_OVER_AT_ONCE,
    HANDED_OVER_WAITING,
    LEASE_SECONDS,
    LEAVING_PAUSE_SECONDS,
    LONGEST_WAIT_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
    PAUSE_WITH_FULL_MEMORY_SECONDS,
    POLL_SECONDS,
    RESULTS_AT_ONCE,
)

log = logging.getLogger("cuepost.engine")


class SharedDispatcher(Dispatcher):
    """Heartbeats keep its lease, which covers its lanes and all deliveries that it holds."""

    results_at_once = RESULTS_AT_ONCE
    longest_wait_seconds = LONGEST_WAIT_SECONDS
    usual_sleep = timedelta(seconds=POLL_SECONDS)
    usual_lease = timedelta(seconds=LEASE_SECONDS)
    first_share = Share()

    @cached_property
    def _beat_now(self) -> asyncio.Event:
        """Set when workers have come or gone."""
        return asyncio.Event()

    @cached_property
    def _has_keys(self) -> asyncio.Event:
        """Set while there are deliveries that were handed over and not read yet."""
        return asyncio.Event()

    def reserve(self, endpoint: Lane) -> UUID | None:
        return super().reserve(endpoint) if self.lanes.holds(endpoint) else None

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        """Another process has leased these deliveries to this worker, if it still has that id.

        Such a word may be lost; the lease is then orphaned, and a heartbeat finds it.
        """
        if worker == self.lease.worker:
            self.lease.expected.update({key[1]: key for key in keys})
            self._has_keys.set()

    def workers_changed(self) -> None:
        """Workers have come or gone, or notifications may have been missed."""
        self._beat_now.set()
        self.intake.wake()

    def _loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [*super()._loops(), self._send_heartbeats(), self._read_handed_over()]

    async def _send_heartbeats(self) -> None:
        while True:
            await self._clock.wait_for(self._beat_now, self.lease.heartbeat_seconds)
            self._beat_now.clear()
            try:
                may_have_work = await self._beat()
            except StoreError as error:
                log_store_error(log, "heartbeat_failed", error, "heartbeat")
                continue
            if may_have_work or self.lease.has_releases or not self.lease.is_held:
                self.intake.wake()

    async def _beat(self) -> bool:
        """Renew the lease, remove dead workers, and share the lanes among the live ones."""
        asked_at = self._clock.monotonic()
        worker, was_registered = self.lease.worker, self.lease.is_registered
        async with self._store.transaction() as transaction:
            now = await self.lease.time(transaction.queue)
            # Before dead workers are removed, because this one may just have been suspended.
            is_mine = await self.lease.renew(transaction.queue, now)
            gone = await transaction.queue.remove_dead_workers(now)
            live = await transaction.queue.live_workers(now)
        if was_registered:
            self.lease.renewed(worker, asked_at, is_mine=is_mine)
        return self.intake.share_with(live) or gone > 0

    async def _read_handed_over(self) -> None:
        while True:
            await self._has_keys.wait()
            keys = list(islice(self.lease.expected.values(), self._count_to_read()))
            if not keys:
                await self._clock.wait(PAUSE_WITH_FULL_MEMORY_SECONDS)
            else:
                try:
                    await self._take_handed_over(keys)
                except StoreError as error:
                    count = len(keys)
                    log_store_error(log, "handed_over_not_read", error, "hand-over", count=count)
                    await self._clock.wait(PAUSE_AFTER_FAILURE_SECONDS)
            if not self.lease.expected:
                self._has_keys.clear()

    def _count_to_read(self) -> int:
        """As many as memory has room for, but not only a few of many.

        The others wait. Those too many are read all the same, so that their lanes stop accepting.
        """
        self.board.adjust_room()
        room, waiting = self.board.room, len(self.lease.expected)
        if room < waiting and self.board.is_short_of_room:
            room = max(0, waiting - HANDED_OVER_WAITING)
        return min(room, HANDED_OVER_AT_ONCE)

    async def _take_handed_over(self, keys: Sequence[DeliveryKey]) -> None:
        asked_at, worker = self._clock.monotonic(), self.lease.worker
        async with self._store.single_read() as transaction:
            found = await transaction.queue.handed_over(worker, keys, self._clock.now())
        # If this worker has a new id, the deliveries of the old one are with other workers.
        if worker != self.lease.worker:
            return
        for _, delivery_id in keys:
            self.lease.expected.pop(delivery_id, None)
        if not self.lease.is_held:
            return
        taken, surplus = [], []
        for assignment, may_be_sent in found:
            lane = assignment.lane
            if assignment.delivery_id in self.lease.released_orphans:
                continue
            if may_be_sent and self.lanes.holds(lane) and self.board.reserve(lane):
                taken.append(assignment)
            else:
                surplus.append(assignment)
        if surplus:
            self.intake.decline(surplus)
        for assignment in taken:
            self.board.free(assignment.lane)
        self._begin(taken, asked_at)

    async def _leave(self) -> None:
        """Also release lanes as soon as they are idle, so that other workers can send."""
        self.lease.give_back(self.board.drop_waiting())
        self.lease.give_back_expected()
        while True:
            # Cleared before the store is called, because an attempt may end during the call.
            self._attempt_ended.clear()
            self.lanes.leave()
            await self._release_lanes_except(self.board.busy)
            if self.board.in_flight:
                await self._attempt_ended.wait()
                await self._clock.wait(LEAVING_PAUSE_SECONDS)
            if not self.board.in_flight:
                return

    async def _release_lanes_except(self, busy: Collection[Lane]) -> None:
        now = self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                returned = await self.lease.release_returned(transaction.queue, now)
                await transaction.queue.leave(self.lease.worker, busy)
        except StoreError as error:
            log_store_error(log, "lanes_not_released", error, "leave")
        else:
            self.lease.returned(returned)
