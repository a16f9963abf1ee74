"""Starts attempts from the lanes in turn, up to the number that may be in flight."""

import asyncio
import logging
from datetime import timedelta
from functools import partial
from uuid import UUID

from cuepost.engine.attempt_pipeline import AttemptPipeline, Crash, Spawn
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import Capacity, LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.worker_lease import WorkerLease
from cuepost.ports.dispatch import Assignment, Lane, Result
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import LONGEST_IN_MEMORY_SECONDS, PAUSE_AFTER_CRASH_SECONDS

log = logging.getLogger("cuepost.engine")


class Sending:
    def __init__(
        self,
        pipeline: AttemptPipeline,
        clock: Clock,
        telemetry: Telemetry,
        capacity: Capacity,
        *,
        lease: WorkerLease,
        board: LaneBoard,
        intake: Intake,
        recorder: OutcomeRecorder,
    ) -> None:
        self._pipeline = pipeline
        self._clock = clock
        self._telemetry = telemetry
        self._capacity = capacity
        self._lease = lease
        self._board = board
        self._intake = intake
        self._recorder = recorder
        self._spawn: Spawn | None = None
        # Set when an attempt ends; cleared by the coroutine that is about to wait for it.
        self.attempt_ended = asyncio.Event()
        self.in_flight = 0
        self.begun = 0

    def open(self, spawn: Spawn) -> None:
        """Allow attempts to start; `spawn` makes a task for those that need one."""
        self._spawn = spawn

    def close(self) -> None:
        """Start no more attempts."""
        self._spawn = None

    async def wait_until_idle(self) -> None:
        while self.in_flight:
            self.attempt_ended.clear()
            await self.attempt_ended.wait()

    def start_attempts(self) -> None:
        """Start all attempts that may begin; none while too many results wait to be recorded."""
        spawn, board = self._spawn, self._board
        while spawn is not None and self.in_flight < self._capacity.attempts:
            if self._recorder.is_full or (taken := board.take()) is None:
                return
            fresh_until, assignment = taken
            self.in_flight += 1
            if board.is_blocked(assignment.lane):
                self._intake.wake_within(LONGEST_IN_MEMORY_SECONDS)
            if not self._start(assignment, fresh_until, spawn):
                spawn(self._run(assignment, fresh_until))

    def _start(self, assignment: Assignment, fresh_until: float, spawn: Spawn) -> bool:
        """Return False if the attempt needs a task, because no connection is open."""
        if not self._may_send(assignment, fresh_until):
            self._give_back(assignment)
            return True
        ended = partial(self._ended_by_callback, self._lease.worker, spawn)
        if not self._pipeline.start(assignment, ended, spawn):
            return False
        self.begun += 1
        return True

    async def _run(self, assignment: Assignment, fresh_until: float) -> None:
        # Checked again, because the process may have been suspended since `_start`.
        if self._may_send(assignment, fresh_until):
            worker = self._lease.worker
            self.begun += 1
            self._ended(worker, await self._pipeline.run(assignment))
        else:
            self._give_back(assignment)
            self.start_attempts()

    def _may_send(self, assignment: Assignment, fresh_until: float) -> bool:
        until = assignment.access_until
        if until is not None and until <= self._clock.now():
            return False
        # A worker that was suspended past its lease must not send: another may have the work.
        return self._lease.is_held and self._clock.monotonic() < fresh_until

    def _give_back(self, assignment: Assignment) -> None:
        self._lease.give_back([assignment])
        self._intake.wake()
        self._free(assignment.lane)

    def _ended_by_callback(self, worker: UUID, spawn: Spawn, ended: Result | Crash) -> None:
        """An error in `_ended` stops the dispatcher, as it does when a task calls it."""
        try:
            self._ended(worker, ended)
        except Exception as error:  # noqa: BLE001  # raised in a task of the dispatcher
            spawn(_raised(error))

    def _ended(self, worker: UUID, ended: Result | Crash) -> None:
        assignment = ended.assignment
        if isinstance(ended, Crash):
            log.error(
                "event=attempt_crashed delivery=%s", assignment.delivery_id, exc_info=ended.error
            )
            self.postpone(assignment)
        else:
            self._report(ended)
            self._recorder.put(worker, ended)
        self._free(assignment.lane)
        self.start_attempts()

    def _free(self, endpoint: Lane) -> None:
        self.in_flight -= 1
        self._board.done(endpoint)
        self._ask_for_more(endpoint)
        self.attempt_ended.set()

    def _ask_for_more(self, endpoint: Lane) -> None:
        if endpoint in self._intake.unfinished and self._board.claimable_of(endpoint) > 0:
            self._intake.wake([endpoint])
        half_empty = self._board.load <= self._capacity.attempts
        if self._intake.is_full and (half_empty or not self._board.ready):
            self._intake.wake()

    def _report(self, result: Result) -> None:
        try:
            self._telemetry.attempted(result)
        except Exception:
            log.exception("event=telemetry_crashed")

    def postpone(self, assignment: Assignment) -> None:
        """The fault is in this service, not in the receiver, so no attempt is counted."""
        self._lease.postpone(
            assignment, self._clock.now() + timedelta(seconds=PAUSE_AFTER_CRASH_SECONDS)
        )
        self._intake.wake()


async def _raised(error: Exception) -> None:
    raise error
