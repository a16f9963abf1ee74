"""Notices that deliveries have stopped although nothing keeps them from going on.

It looks at what the engine has done, not at how: whatever the cause, there is work that is due,
capacity to do it, and for two seconds nothing was started or recorded. Looks are counted instead of
seconds, so that a process that was suspended is given time to go on.
"""

import logging
from datetime import timedelta

from cuepost.engine.dispatcher import Dispatcher
from cuepost.ports.store import Priority, Store, StoreError, Transaction
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import LOOK_SECONDS, LOOKS_UNTIL_STALLED

log = logging.getLogger("cuepost.engine")

OVERDUE = timedelta(seconds=LOOK_SECONDS * LOOKS_UNTIL_STALLED)

NOT_RECORDED = "results are not recorded"
NOT_STARTED = "claimed deliveries are not started"
NOT_CLAIMED = "due deliveries are not claimed"


class Watchdog:
    def __init__(
        self, dispatcher: Dispatcher, store: Store, clock: Clock, telemetry: Telemetry
    ) -> None:
        self._dispatcher = dispatcher
        self._store = store
        self._clock = clock
        self._telemetry = telemetry
        self._progress = -1
        self._looks = 0
        self.stalled: str | None = None

    async def run(self) -> None:
        while True:
            await self._clock.wait(LOOK_SECONDS)
            await self.look()

    async def look(self) -> None:
        progress = self._dispatcher.state.progress
        if progress != self._progress:
            self._progress, self._looks = progress, 0
            self._note(None)
            return
        self._looks += 1
        if self._looks % LOOKS_UNTIL_STALLED == 0:
            self._note(await self._reason())

    async def _reason(self) -> str | None:
        """Why this is a stall, or None while there is nothing to do or no store to do it with."""
        state = self._dispatcher.state
        if not state.running:
            return None
        try:
            await self._wait_for_a_change()
            if self._dispatcher.state.progress != self._progress:
                return None
            if state.unrecorded:
                return NOT_RECORDED
            if state.lanes_ready and self._dispatcher.has_capacity_for():
                return NOT_STARTED
            overdue = await self._overdue()
        except StoreError:
            return None
        return NOT_CLAIMED if overdue else None

    async def _wait_for_a_change(self) -> None:
        """Until the store has taken what the engine gave it before: a slow disk is no stall."""

        async def nothing(_: Transaction) -> None:
            """It waits its turn behind the engine's own writes."""

        await self._store.check()
        await self._store.write(nothing, Priority.BACKGROUND)

    async def _overdue(self) -> bool:
        before = self._clock.now() - OVERDUE
        async with self._store.snapshot() as transaction:
            lanes = await transaction.queue.overdue(self._dispatcher.state.worker, before)
        mine = filter(self._dispatcher.owns, lanes)
        return any(self._dispatcher.has_capacity_for(lane) for lane in mine)

    def _note(self, reason: str | None) -> None:
        if reason == self.stalled:
            return
        before, self.stalled = self.stalled, reason
        if reason is None:
            log.warning('event=engine_goes_on after="%s"', before)
            return
        log.error('event=engine_stalled reason="%s" %s', reason, self._dispatcher.state)
        self._telemetry.stalled(reason)
