"""Starts attempts from the lanes in turn, up to the number that may be in flight.

The intake claims what is due, the board holds it until its turn, the pipeline makes the attempt,
and the recorder writes its result.
"""

import asyncio
import logging
from collections.abc import Collection, Coroutine, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, NamedTuple
from uuid import UUID

from cuepost.engine.attempt_pipeline import AttemptPipeline, Crash, Spawn
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import Capacity, LaneBoard
from cuepost.engine.lanes import Lanes
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.worker_lease import ENDLESS, LONG_AGO, WorkerLease
from cuepost.ports.dispatch import Assignment, DeliveryKey, Lane, Result, Share
from cuepost.ports.store import Store
from cuepost.ports.system import Clock, IdSource
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import (
    LONGEST_IN_MEMORY_SECONDS,
    LONGEST_WAIT_ALONE_SECONDS,
    PAUSE_AFTER_CRASH_SECONDS,
    POLL_ALONE_SECONDS,
    RESULTS_AT_ONCE,
    RESULTS_AT_ONCE_ALONE,
    SHUTDOWN_RECORDING_SECONDS,
    UNRECORDED_PER_ATTEMPT,
)

log = logging.getLogger("cuepost.engine")


class _NotSent(NamedTuple):
    """The attempt was not begun, because it would have been too late."""

    assignment: Assignment


class Dispatcher:
    """The only worker of an embedded store; `SharedDispatcher` is one of several on PostgreSQL."""

    results_at_once = RESULTS_AT_ONCE_ALONE
    longest_wait_seconds = LONGEST_WAIT_ALONE_SECONDS
    usual_sleep = timedelta(seconds=POLL_ALONE_SECONDS)
    usual_lease = ENDLESS
    first_share: Share | None = None
    running: bool
    # Counts attempts begun and results recorded.
    progress: int
    # Makes tasks of `run`; set before the first attempt.
    _spawn: Spawn

    def __init__(
        self,
        store: Store,
        pipeline: AttemptPipeline,
        clock: Clock,
        ids: IdSource,
        *,
        capacity: Capacity,
        telemetry: Telemetry,
        longest_sleep: timedelta | None = None,
        lease: timedelta | None = None,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._clock = clock
        self.lease = WorkerLease(clock, ids, lease or self.usual_lease)
        self.board = LaneBoard(capacity, clock)
        self.lanes = Lanes(self.lease, self.board, self.first_share)
        poll = longest_sleep or self.usual_sleep
        self.intake = Intake(
            store, clock, self.lease, self.board, self.lanes, begin=self._begin, poll=poll
        )
        self._most_unrecorded = UNRECORDED_PER_ATTEMPT * capacity.attempts
        self.recorder = OutcomeRecorder(
            store,
            clock,
            telemetry,
            full_group=min(RESULTS_AT_ONCE, self._most_unrecorded),
            at_once=self.results_at_once,
            longest_wait=self.longest_wait_seconds,
            board=self.board,
            intake=self.intake,
            written=self._written,
            unwritable=self._unwritable,
        )
        # Cleared by the coroutine that is about to wait for it.
        self._attempt_ended = asyncio.Event()
        self.running = False
        self.progress = 0

    def reserve(self, endpoint: Lane) -> UUID | None:
        """Not if older deliveries of the endpoint are known to wait in the store."""
        may_take = (
            self.running
            and not self.intake.is_stopping
            and self._clock.monotonic() < self.lease.until
            and endpoint not in self.intake.unfinished
            and self.board.reserve(endpoint)
        )
        return self.lease.worker if may_take else None

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        for each in assignments:
            self.board.free(each.lane)
        # Assignments of an earlier lease are released together with that lease.
        if self.running and worker == self.lease.worker:
            released = self.lease.released_orphans
            mine = [each for each in assignments if each.delivery_id not in released]
            age = (self._clock.now() - as_of).total_seconds()
            # An instant in the future has no known age.
            self._begin(mine, self._clock.monotonic() - age if age >= 0 else LONG_AGO)

    def give_back(self, endpoints: Sequence[Lane]) -> None:
        for endpoint in endpoints:
            self.board.free(endpoint)
        # A claim may have found no room because of them.
        self.intake.wake(endpoints)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self.intake.wake(endpoints)

    def reaches(self, worker: UUID) -> bool:
        """No other process can send."""
        return False

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        raise AssertionError("no worker was reached")

    def stop(self) -> None:
        """Finish the attempts in flight and release the other deliveries."""
        self.intake.stop()

    async def run(self) -> None:
        """Run until `stop` is called; then wait for the attempts in flight."""
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(loop) for loop in self._loops()]
            self._spawn, self.running = tasks.create_task, True
            try:
                await self.intake.run()
            finally:
                self.running = False
            self.recorder.stop_grouping()
            await self._leave()
            await self.recorder.finish(SHUTDOWN_RECORDING_SECONDS)
            for task in beside:
                task.cancel()
        await self.lease.end(self._store)

    def _loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        """What runs beside the claims."""
        return [self.recorder.run(), self.recorder.run_singles()]

    async def _leave(self) -> None:
        """Release what waits here, and wait for the attempts in flight."""
        self.lease.give_back(self.board.drop_waiting())
        while self.board.in_flight:
            self._attempt_ended.clear()
            await self._attempt_ended.wait()

    def _begin(self, assigned: Sequence[Assignment], as_of: float) -> None:
        """`as_of` is the monotonic time that the assignments describe."""
        self.board.add(self.lease.took(assigned), as_of + LONGEST_IN_MEMORY_SECONDS)
        self._start_attempts()
        if self.board.waiting:
            # So that it is released soon after it is outdated.
            self.intake.wake_within(LONGEST_IN_MEMORY_SECONDS)

    def _start_attempts(self) -> None:
        """Start all attempts that may begin; none while too many results wait to be recorded."""
        while self.running and self.recorder.unrecorded < self._most_unrecorded:
            taken = self.board.take()
            if taken is None:
                return
            fresh_until, assignment = taken
            ended = partial(self._ended, self.lease.worker)
            if self._may_send(assignment, fresh_until) and self._pipeline.start(
                assignment, ended, self._spawn
            ):
                self.progress += 1
            else:
                self._spawn(self._make_attempt(assignment, fresh_until))

    async def _make_attempt(self, assignment: Assignment, fresh_until: float) -> None:
        """For an attempt that needs a task, because no connection is open, or that is too late."""
        worker = self.lease.worker
        ended: Result | Crash | _NotSent = _NotSent(assignment)
        # Checked again, because the process may have been suspended since `_start_attempts`.
        if self._may_send(assignment, fresh_until):
            self.progress += 1
            ended = await self._pipeline.run(assignment)
        self._ended(worker, ended)

    def _may_send(self, assignment: Assignment, fresh_until: float) -> bool:
        until = assignment.access_until
        if until is not None and until <= self._clock.now():
            return False
        # A worker that was suspended past its lease must not send: another may have the work.
        return self._clock.monotonic() < min(fresh_until, self.lease.until)

    def _ended(self, worker: UUID, ended: Result | Crash | _NotSent) -> None:
        assignment, lane = ended.assignment, ended.assignment.lane
        try:
            if isinstance(ended, Result):
                self.recorder.put(worker, ended)
            elif isinstance(ended, Crash):
                delivery_id = assignment.delivery_id
                log.error("event=attempt_crashed delivery=%s", delivery_id, exc_info=ended.error)
                self._postpone(assignment)
            else:
                self.lease.give_back([assignment])
                self.intake.wake()
            self.board.done(lane)
            self._attempt_ended.set()
            if lane in self.intake.unfinished and self.board.claimable_of(lane) > 0:
                self.intake.wake([lane])
            half_empty = self.board.load <= self.board.capacity.attempts
            if self.intake.is_full and (half_empty or not self.board.ready):
                self.intake.wake()
            self._start_attempts()
        except Exception as error:  # noqa: BLE001  # raised in a task of `run`, which it ends
            self._spawn(_raised(error))

    def _postpone(self, assignment: Assignment) -> None:
        """The fault is in this service, not in the receiver, so no attempt is counted."""
        due_at = self._clock.now() + timedelta(seconds=PAUSE_AFTER_CRASH_SECONDS)
        self.lease.postpone(assignment, due_at)
        self.intake.wake()

    def _written(self, results: Sequence[Result]) -> None:
        self.progress += len(results)
        self.lease.recorded(results)
        again = [each.next_step.due_at for each in results if each.next_step.due_at is not None]
        if again and self.intake.sleeps_until is None:
            # A claim is running, and may have read the queue before these results were written.
            self.intake.wake()
        elif again:
            self.intake.wake_within((min(again) - self._clock.now()).total_seconds())
        self._start_attempts()

    def _unwritable(self, result: Result) -> None:
        self._postpone(result.assignment)
        self._start_attempts()


async def _raised(error: Exception) -> None:
    raise error
