"""Writes results to the store: at once while the load is low, in groups while it is high.

A result that the store refuses does not delay the others: a group that keeps failing is split, its
results are tried one by one, and one that still fails is set aside.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import LaneBoard
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import Result
from cuepost.ports.store import (
    Contention,
    KeyTaken,
    Priority,
    Store,
    StoreUnavailable,
    Transaction,
)
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import (
    BUSY_FROM,
    GROUP_TRIES,
    PAUSE_AFTER_CONTENTION_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
    SINGLE_RESULT_TRIES,
)

log = logging.getLogger("cuepost.engine")


@dataclass(slots=True)
class _Held:
    """A result, and the worker that held its delivery.

    After its group was split: how often the store has refused it alone, and how many writes had
    succeeded before its last try.
    """

    worker: UUID
    result: Result
    refusals: int = 0
    writes_before: int = 0


@dataclass(slots=True)
class OutcomeRecorder:
    """`written` is called with results that are in the store, `unwritable` with one set aside.

    These results no longer wait here by then. At most `at_once` results are written together. While
    much is in memory, or more waits in the store, they wait until there are `full_group`, at most
    `longest_wait` seconds.
    """

    store: Store
    clock: Clock
    telemetry: Telemetry
    full_group: int
    at_once: int
    longest_wait: float
    board: LaneBoard
    intake: Intake
    written: Callable[[Sequence[Result]], None]
    unwritable: Callable[[Result], None]
    unrecorded: int = 0
    _results: list[_Held] = field(default_factory=list)
    _singles: list[_Held] = field(default_factory=list)
    _failures: int = 0
    _writes: int = 0
    # Set when there is something to write, and when a group is full.
    _wake_up: asyncio.Event = field(default_factory=asyncio.Event)
    _single_work: asyncio.Event = field(default_factory=asyncio.Event)
    _empty: asyncio.Event = field(default_factory=asyncio.Event)
    _grouping_stopped: bool = False

    def put(self, worker: UUID, result: Result) -> None:
        try:
            self.telemetry.attempted(result)
        except Exception:
            log.exception("event=telemetry_crashed")
        self._results.append(_Held(worker, result))
        self.unrecorded += 1
        if len(self._results) == 1 or len(self._results) >= self.full_group:
            self._wake_up.set()

    async def run(self) -> None:
        while True:
            while not self._results:
                self._wake_up.clear()
                await self._wake_up.wait()
            # A wake-up after this is for a full group.
            self._wake_up.clear()
            may_wait = len(self._results) < self.full_group and not self._grouping_stopped
            if may_wait and (self.board.load >= BUSY_FROM or self.intake.unfinished):
                await self.clock.wait_for(self._wake_up, self.longest_wait)
            await self._flush()
            if not self.unrecorded:
                self._empty.set()

    async def run_singles(self) -> None:
        """Runs beside `run`, so that results that are tried one by one delay nothing else."""
        while True:
            await self._single_work.wait()
            for single in list(self._singles):
                if not await self._try_single(single):
                    # The next round begins with another result, which may succeed.
                    self._singles.remove(single)
                    self._singles.append(single)
                    break
            if self._singles:
                await self.clock.wait(PAUSE_AFTER_FAILURE_SECONDS)
            else:
                self._single_work.clear()
            if not self.unrecorded:
                self._empty.set()

    def stop_grouping(self) -> None:
        """From now on results are written at once, without waiting for a group to fill."""
        self._grouping_stopped = True
        self._wake_up.set()

    async def finish(self, seconds: float) -> None:
        """Write what is left for at most this long; the rest counts as interrupted."""
        self._empty.clear()
        if self.unrecorded and not await self.clock.wait_for(self._empty, seconds):
            log.error("event=outcomes_given_up count=%d", self.unrecorded)

    async def _flush(self) -> None:
        try:
            group = await self._write()
        except (StoreUnavailable, Contention) as error:
            waiting = len(self._results[: self.at_once])
            log_store_error(log, "outcomes_not_recorded", error, "record", waiting=waiting)
            self._failures += 1
            if self._should_split_group(error):
                self._split_group()
            contended = isinstance(error, Contention)
            await self.clock.wait(
                PAUSE_AFTER_CONTENTION_SECONDS if contended else PAUSE_AFTER_FAILURE_SECONDS
            )
        except Exception:
            log.exception("event=outcomes_refused count=%d", len(self._results[: self.at_once]))
            self._split_group()
        else:
            self._failures = 0
            del self._results[: len(group)]
            self.written([each.result for each in group])

    def _should_split_group(self, error: Exception) -> bool:
        """An unavailable store refuses every group, so only one group at a time is split then."""
        if isinstance(error, StoreUnavailable):
            return self._failures >= GROUP_TRIES and not self._singles
        return self._failures >= GROUP_TRIES or isinstance(error, KeyTaken)

    def _split_group(self) -> None:
        self._failures = 0
        for each in self._results[: self.at_once]:
            each.writes_before = self._writes
            self._singles.append(each)
        del self._results[: self.at_once]
        self._single_work.set()

    async def _try_single(self, single: _Held) -> bool:
        """Return False if the store seems unavailable, so that the failure is not the result's."""
        delivery_id = single.result.assignment.delivery_id
        try:
            await self._write([single])
        except (StoreUnavailable, Contention) as error:
            log_store_error(log, "outcome_not_recorded", error, "record", delivery=delivery_id)
            # A store that has written other results since the last try is available.
            no_writes = self._writes == single.writes_before
            single.writes_before = self._writes
            if isinstance(error, StoreUnavailable) and no_writes:
                return False
            single.refusals += 1
        except Exception:
            log.exception("event=outcome_refused delivery=%s", delivery_id)
            single.refusals += 1
        else:
            self._singles.remove(single)
            self.written([single.result])
        if single.refusals >= SINGLE_RESULT_TRIES:
            self._set_aside(single)
        return True

    def _set_aside(self, single: _Held) -> None:
        self._singles.remove(single)
        self.unrecorded -= 1
        result, assignment = single.result, single.result.assignment
        log.error(
            "event=outcome_set_aside delivery=%s budget=%d attempt=%d outcome=%s",
            assignment.delivery_id,
            assignment.budget,
            assignment.number,
            result.attempt.outcome,
        )
        self.unwritable(result)

    async def _write(self, alone: Sequence[_Held] = ()) -> Sequence[_Held]:
        """Without `alone`, write the next group, and return it."""

        async def record(transaction: Transaction) -> tuple[Sequence[_Held], int]:
            # Chosen when the transaction begins, because more may be waiting by then.
            group, late, now = alone or self._results[: self.at_once], 0, self.clock.now()
            for worker in dict.fromkeys(each.worker for each in group):
                results = [each.result for each in group if each.worker == worker]
                late += await transaction.outcomes.record(worker, results, now)
            return group, late

        group, late = await self.store.write(record, Priority.BACKGROUND)
        self._writes += 1
        self.unrecorded -= len(group)
        if late:
            log.warning("event=late_results count=%d", late)
            self.telemetry.late(late)
        return group
