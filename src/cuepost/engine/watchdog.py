"""Detects a stall: deliveries have stopped although work is due and there is capacity for it.

It observes only the progress of the engine, so it detects a stall whatever the cause is: for two
seconds, and then half a second in which the store was seen to accept writes, no attempt was started
and no result recorded. It counts checks instead of seconds, so that a process that was suspended
gets time to continue.
"""

import logging
from datetime import timedelta

from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.store import Priority, Store, StoreError, Transaction
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import CHECKS_UNTIL_STALLED, WATCHDOG_SECONDS

log = logging.getLogger("cuepost.engine")

OVERDUE = timedelta(seconds=WATCHDOG_SECONDS * CHECKS_UNTIL_STALLED)

NOT_RECORDED = "results are not recorded"
NOT_STARTED = "claimed deliveries are not started"
NOT_CLAIMED = "due deliveries are not claimed"


def described(dispatcher: Dispatcher) -> str:
    """What the engine is doing; `sleeps_until` is an instant of the monotonic clock."""
    lease, board, intake = dispatcher.lease, dispatcher.board, dispatcher.intake
    state = {
        "worker": lease.worker,
        "running": dispatcher.running,
        "stopping": intake.is_stopping,
        "lease_held": lease.is_held,
        "progress": dispatcher.progress,
        "in_flight": board.in_flight,
        "held": board.load,
        "lanes_ready": len(board.ready),
        "unrecorded": dispatcher.recorder.unrecorded,
        "memory_full": intake.is_full,
        "backlog": bool(intake.unfinished),
        "sleeps_until": intake.sleeps_until,
    }
    return " ".join(f"{name}={value}" for name, value in state.items())


class Watchdog:
    def __init__(
        self, dispatcher: Dispatcher, store: Store, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._progress = -1
        self._checks = 0
        self.stalled: str | None = None

    async def run(self) -> None:
        while True:
            await self._clock.wait(WATCHDOG_SECONDS)
            await self.check()

    async def check(self) -> None:
        progress = self._dispatcher.progress
        if progress != self._progress:
            self._progress, self._checks = progress, 0
            self._note(None)
            return
        self._checks += 1
        if self._checks % CHECKS_UNTIL_STALLED == 0:
            self._note(await self._reason())

    async def _reason(self) -> str | None:
        """The reason for the stall; None if nothing is due or the store is unavailable."""
        if not self._dispatcher.running:
            return None
        dispatcher, recorder = self._dispatcher, self._dispatcher.recorder
        unrecorded_before = recorder.unrecorded
        try:
            await self._wait_for_engine_writes()
            # If the store was slow until now, the engine gets time to continue.
            await self._clock.wait(WATCHDOG_SECONDS)
            if not dispatcher.running or dispatcher.progress != self._progress:
                return None
            if recorder.unrecorded:
                # Results that came since then are about to be recorded.
                return NOT_RECORDED if unrecorded_before else None
            if dispatcher.board.ready and dispatcher.board.has_capacity_for():
                return NOT_STARTED
            overdue = await self._overdue()
        except StoreError:
            return None
        return NOT_CLAIMED if overdue else None

    async def _wait_for_engine_writes(self) -> None:
        """Wait until the engine's earlier writes are done, because a slow disk is no stall."""

        async def nothing(_: Transaction) -> None:
            """An empty write, which is queued behind the engine's own."""

        await self._store.check()
        await self._store.write(nothing, Priority.BACKGROUND)

    async def _overdue(self) -> bool:
        # What is due is judged by the clock that all workers share.
        lease, board = self._dispatcher.lease, self._dispatcher.board
        before = self._clock.now() - lease.clock_ahead - OVERDUE
        async with self._store.snapshot() as transaction:
            lanes = await transaction.queue.overdue(lease.worker, before)
        mine = filter(self._dispatcher.lanes.owns, lanes)
        return any(board.has_capacity_for(lane) for lane in mine)

    def _note(self, reason: str | None) -> None:
        if reason == self.stalled:
            return
        before, self.stalled = self.stalled, reason
        if reason is None:
            log.warning('event=engine_goes_on after="%s"', before)
            return
        log.error('event=engine_stalled reason="%s" %s', reason, described(self._dispatcher))
        self._telemetry.stalled(reason)
