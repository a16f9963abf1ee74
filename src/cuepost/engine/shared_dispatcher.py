"""One of several workers on PostgreSQL: it shares the lanes, and takes what others hand over."""

import logging
from collections.abc import Callable, Collection, Coroutine, Sequence
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.handed_over import HandedOver
from cuepost.engine.heartbeat import Heartbeat
from cuepost.engine.lanes import SharedLanes
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import DeliveryKey, Lane
from cuepost.ports.store import StoreError
from cuepost.tuning import (
    LEASE_SECONDS,
    LEAVING_PAUSE_SECONDS,
    LONGEST_WAIT_SECONDS,
    POLL_SECONDS,
    RESULTS_AT_ONCE,
)

log = logging.getLogger("cuepost.engine")


class SharedDispatcher(Dispatcher):
    results_at_once = RESULTS_AT_ONCE
    longest_wait_seconds = LONGEST_WAIT_SECONDS
    usual_sleep = timedelta(seconds=POLL_SECONDS)
    usual_lease = timedelta(seconds=LEASE_SECONDS)
    _lanes: SharedLanes

    @cached_property
    def _heartbeat(self) -> Heartbeat:
        return Heartbeat(self._store, self._clock, self._lease, self._intake)

    @cached_property
    def _handed_over(self) -> HandedOver:
        return HandedOver(
            self._store,
            self._clock,
            lease=self._lease,
            board=self._board,
            lanes=self._lanes,
            intake=self._intake,
            begin=self._begin,
        )

    def _new_lanes(self) -> SharedLanes:
        return SharedLanes(self._lease, self._board)

    def reserve(self, endpoint: Lane) -> UUID | None:
        return super().reserve(endpoint) if self._lanes.holds(endpoint) else None

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        """Another process has leased these deliveries to this worker, if it still has that id."""
        self._handed_over.add(worker, keys)

    def workers_changed(self) -> None:
        """Workers have come or gone, or notifications may have been missed."""
        self._heartbeat.beat_now()
        self._intake.wake()

    def announce_to(self, others: Callable[[Collection[Lane]], None]) -> None:
        """`others` is called with the lanes that this worker has released for other workers."""
        self._lanes.announce = others

    def _loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        return [*super()._loops(), self._heartbeat.run(), self._handed_over.run()]

    async def _leave(self) -> None:
        """Also release lanes as soon as they are idle, so that other workers can send."""
        self._lease.give_back(self._board.drop_waiting())
        self._handed_over.leave()
        while self._in_flight:
            # Cleared before the store is called, because an attempt may end during the call.
            self._attempt_ended.clear()
            self._lanes.leave()
            await self._release_lanes_except(self._board.busy)
            if self._in_flight:
                await self._attempt_ended.wait()
            await self._clock.wait(LEAVING_PAUSE_SECONDS)

    async def _release_lanes_except(self, busy: Collection[Lane]) -> None:
        now = self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                returned = await self._lease.release_returned(transaction.queue, now)
                await transaction.queue.leave(self._lease.worker, busy)
        except StoreError as error:
            log_store_error(log, "lanes_not_released", error, "leave")
        else:
            self._lease.returned(returned)
