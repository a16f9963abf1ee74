"""Writes results down: at once while little goes on, in groups while much does."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from uuid import UUID

from cuepost.engine.right_of_way import RightOfWay
from cuepost.ports.dispatch import Result
from cuepost.ports.runtime import Clock
from cuepost.ports.store import Contention, Manner, Store, StoreUnavailable
from cuepost.ports.telemetry import Telemetry

log = logging.getLogger("cuepost.engine")

GROUP = 100
LONGEST_WAIT_SECONDS = 0.05
# The embedded store has one turn to write: a small group is given up for what cannot wait.
LONGEST_WAIT_ALONE_SECONDS = 0.02
PAUSE_AFTER_FAILURE_SECONDS = 0.5
PAUSE_AFTER_CONTENTION_SECONDS = 0.02


@dataclass(slots=True)
class OutcomeRecorder:
    """`written` hears of results that are in the store, `unwritable` of one that never will be.

    `alone` says that the store is this worker's own.
    """

    store: Store
    clock: Clock
    telemetry: Telemetry
    most_unrecorded: int
    alone: bool
    is_busy: Callable[[], bool]
    way: RightOfWay
    written: Callable[[Sequence[Result]], None]
    unwritable: Callable[[Result], None]
    _results: list[tuple[UUID, Result]] = field(default_factory=list)
    _group: int = GROUP
    _work: asyncio.Event = field(default_factory=asyncio.Event)
    _crowd: asyncio.Event = field(default_factory=asyncio.Event)
    _room: asyncio.Event = field(default_factory=asyncio.Event)
    _finished: asyncio.Event = field(default_factory=asyncio.Event)
    _hurrying: bool = False
    _closing: bool = False

    async def put(self, worker: UUID, result: Result) -> None:
        """Waits while the store is so far behind that memory would fill."""
        while len(self._results) >= self.most_unrecorded and not self._hurrying:
            self._room.clear()
            await self._room.wait()
        self._results.append((worker, result))
        self._work.set()
        if self._are_many:
            self._crowd.set()

    async def run(self) -> None:
        """Until closed, and everything is written."""
        while self._results or not self._closing:
            await self._work.wait()
            if self.is_busy() and not self._hurrying:
                longest = LONGEST_WAIT_ALONE_SECONDS if self.alone else LONGEST_WAIT_SECONDS
                await self.clock.wait_for(self._crowd, longest)
            await self._flush()
            if not self._results and not self._closing:
                self._work.clear()
        self._finished.set()

    def hurry(self) -> None:
        """Nothing more waits for company, nor for the store to catch up."""
        self._hurrying = True
        self._crowd.set()
        self._room.set()

    async def finish(self, seconds: float) -> None:
        """Write what is left, but no longer than that; whoever takes over sends the rest again."""
        self._closing = True
        self._work.set()
        if not await self.clock.wait_for(self._finished, seconds):
            log.error("event=outcomes_given_up count=%d", len(self._results))

    async def _flush(self) -> None:
        group = self._results[: self._group]
        try:
            await self.way.behind(partial(self._write, group))
        except (StoreUnavailable, Contention) as error:
            log.warning("event=outcomes_not_recorded waiting=%d error=%s", len(group), error)
            contended = isinstance(error, Contention)
            await self.clock.wait(
                PAUSE_AFTER_CONTENTION_SECONDS if contended else PAUSE_AFTER_FAILURE_SECONDS
            )
            return
        except Exception:
            log.exception("event=outcomes_refused count=%d", len(group))
            if not self._is_alone(group):
                return
            self.unwritable(group[0][1])
        else:
            self.written([result for _, result in group])
        self._forget(len(group))

    @property
    def _are_many(self) -> bool:
        return len(self._results) >= min(GROUP, self.most_unrecorded)

    def _is_alone(self, group: Sequence[tuple[UUID, Result]]) -> bool:
        """One that the store does not take must not hold up the others: they go one by one."""
        self._group = 1
        return len(group) == 1

    def _forget(self, count: int) -> None:
        del self._results[:count]
        self._group = min(GROUP, 2 * self._group)
        if not self._are_many and not self._hurrying:
            self._crowd.clear()
        self._room.set()

    async def _write(self, group: Sequence[tuple[UUID, Result]], manner: Manner) -> None:
        if not group:
            return
        told: list[tuple[int, int]] = []
        now = self.clock.now()
        async with self.store.transaction(manner) as transaction:
            for worker in dict.fromkeys(worker for worker, _ in group):
                results = [result for holder, result in group if holder == worker]
                late = await transaction.outcomes.record(worker, results, now)
                told.append((len(results), late))
                if late:
                    log.warning("event=late_results_refused worker=%s count=%d", worker, late)
        for results_written, refused in told:
            self.telemetry.recorded(results_written, refused, now)
