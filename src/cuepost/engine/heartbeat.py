"""Renews this worker's lease, removes dead workers, and shares the lanes among the live ones."""

import asyncio
import logging

from cuepost.engine.intake import Intake
from cuepost.engine.worker_lease import WorkerLease
from cuepost.log_lines import log_store_error
from cuepost.ports.store import Store, StoreError
from cuepost.ports.system import Clock

log = logging.getLogger("cuepost.engine")


class Heartbeat:
    def __init__(self, store: Store, clock: Clock, lease: WorkerLease, intake: Intake) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._intake = intake
        self._now = asyncio.Event()

    def beat_now(self) -> None:
        """Called when workers have come or gone."""
        self._now.set()

    async def run(self) -> None:
        while True:
            await self._clock.wait_for(self._now, self._lease.heartbeat_seconds)
            self._now.clear()
            try:
                changed = await self._beat()
            except StoreError as error:
                log_store_error(log, "heartbeat_failed", error, "heartbeat")
                continue
            if changed or self._lease.has_releases or not self._lease.is_held:
                self._intake.wake()

    async def _beat(self) -> bool:
        """Return True if there may be new work for this worker."""
        asked_at = self._clock.monotonic()
        worker, was_registered = self._lease.worker, self._lease.is_registered
        async with self._store.transaction() as transaction:
            now = await self._lease.time(transaction.queue)
            # Before dead workers are removed, because this one may just have been suspended.
            is_mine = await self._lease.renew(transaction.queue, now)
            gone = await transaction.queue.remove_dead_workers(now)
            live = await transaction.queue.live_workers(now)
        if was_registered:
            self._lease.renewed(worker, asked_at, is_mine=is_mine)
        return self._intake.share_with(live) or gone > 0
