"""Claims due deliveries, keeps the lanes filled, and runs attempts until it is stopped."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuepost.engine.attempt_pipeline import AttemptPipeline
from cuepost.engine.engine_state import EngineState
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import Capacity, LaneBoard
from cuepost.engine.lanes import Lanes
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.sending import Sending
from cuepost.engine.worker_lease import ENDLESS, LONG_AGO, WorkerLease
from cuepost.ports.dispatch import Assignment, DeliveryKey, Lane, Result
from cuepost.ports.store import Store
from cuepost.ports.system import Clock, IdSource
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import (
    BUSY_FROM,
    LONGEST_IN_MEMORY_SECONDS,
    LONGEST_WAIT_ALONE_SECONDS,
    POLL_ALONE_SECONDS,
    RESULTS_AT_ONCE_ALONE,
    SHUTDOWN_RECORDING_SECONDS,
    UNRECORDED_PER_ATTEMPT,
)


class Dispatcher:
    """The only worker of an embedded store; `SharedDispatcher` is one of several on PostgreSQL."""

    results_at_once = RESULTS_AT_ONCE_ALONE
    longest_wait_seconds = LONGEST_WAIT_ALONE_SECONDS
    usual_sleep = timedelta(seconds=POLL_ALONE_SECONDS)
    usual_lease = ENDLESS

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
        self._clock = clock
        self._capacity = capacity
        self._telemetry = telemetry
        self._lease = WorkerLease(clock, ids, lease or self.usual_lease)
        self._board = LaneBoard(capacity, clock)
        self._lanes = self._new_lanes()
        self._intake = Intake(
            store,
            clock,
            self._lease,
            self._board,
            self._lanes,
            longest_sleep=longest_sleep or self.usual_sleep,
            begin=self._start,
        )
        self._recorder = self._new_recorder()
        self._sending = self._new_sending(pipeline)
        self._recorded = 0
        self.running = False

    def _new_lanes(self) -> Lanes:
        return Lanes()

    def _new_recorder(self) -> OutcomeRecorder:
        return OutcomeRecorder(
            self._store,
            self._clock,
            self._telemetry,
            most_unrecorded=UNRECORDED_PER_ATTEMPT * self._capacity.attempts,
            at_once=self.results_at_once,
            longest_wait=self.longest_wait_seconds,
            is_busy=lambda: self._board.load >= BUSY_FROM or bool(self._intake.unfinished),
            written=self._written,
            unwritable=lambda result: self._sending.postpone(result.assignment),
            room_made=self._start_attempts,
        )

    def _new_sending(self, pipeline: AttemptPipeline) -> Sending:
        return Sending(
            pipeline,
            self._clock,
            self._telemetry,
            self._capacity,
            lease=self._lease,
            board=self._board,
            intake=self._intake,
            recorder=self._recorder,
        )

    def reserve(self, endpoint: Lane) -> UUID | None:
        """Only if nothing older waits in the store."""
        may_take = (
            self.running
            and not self._intake.is_stopping
            and self._lease.is_held
            and self._lanes.holds(endpoint)
            and endpoint not in self._intake.unfinished
            and self._board.reserve(endpoint)
        )
        return self._lease.worker if may_take else None

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        self.give_back([each.lane for each in assignments])
        # Assignments of an earlier lease are released together with that lease.
        if self.running and worker == self._lease.worker:
            mine = [each for each in assignments if not self._lease.was_released_as_orphan(each)]
            self._start(mine, self._monotonic_at(as_of))

    def _monotonic_at(self, as_of: datetime) -> float:
        """The monotonic time of a wall-clock instant; an instant in the future has no known age."""
        age = (self._clock.now() - as_of).total_seconds()
        return self._clock.monotonic() - age if age >= 0 else LONG_AGO

    def give_back(self, endpoints: Sequence[Lane]) -> None:
        self._board.give_back(endpoints)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self._intake.wake(endpoints)

    def reaches(self, worker: UUID) -> bool:
        """No other process can send."""
        return False

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        raise AssertionError("no worker was reached")

    def owns(self, endpoint: Lane) -> bool:
        return self._lanes.owns(endpoint)

    @property
    def state(self) -> EngineState:
        return EngineState(
            worker=self._lease.worker,
            running=self.running,
            stopping=self._intake.is_stopping,
            lease_held=self._lease.is_held,
            progress=self._sending.begun + self._recorded,
            in_flight=self._sending.in_flight,
            held=self._board.load,
            lanes_ready=self._board.ready,
            unrecorded=self._recorder.unrecorded,
            memory_full=self._intake.is_full,
            backlog=bool(self._intake.unfinished),
            sleeps_until=self._intake.sleeps_until,
        )

    @property
    def clock_ahead_seconds(self) -> float:
        """How far this machine's clock is ahead of the clock that all workers share."""
        return self._lease.clock_ahead.total_seconds()

    def has_capacity_for(self, endpoint: Lane | None = None) -> bool:
        is_full = self._sending.in_flight >= self._capacity.attempts
        return not is_full and (endpoint is None or self._board.has_slot(endpoint))

    def stop(self) -> None:
        """Finish the attempts in flight and release the other deliveries."""
        self._intake.stop()

    async def run(self) -> None:
        """Run until `stop` is called; then wait for the attempts in flight."""
        async with asyncio.TaskGroup() as tasks:
            beside = [tasks.create_task(loop) for loop in self._loops()]
            self.running = True
            self._sending.open(tasks.create_task)
            try:
                await self._intake.run()
            finally:
                self.running = False
                self._sending.close()
            self._recorder.stop_grouping()
            await self._leave()
            await self._recorder.finish(SHUTDOWN_RECORDING_SECONDS)
            for task in beside:
                task.cancel()
        await self._lease.end(self._store)

    def _loops(self) -> Sequence[Coroutine[Any, Any, None]]:
        """What runs beside the claims."""
        return [self._recorder.run(), self._recorder.run_singles()]

    async def _leave(self) -> None:
        """Release what waits here, and wait for the attempts in flight."""
        self._lease.give_back(self._board.drop_waiting())
        await self._sending.wait_until_idle()

    def _start(self, assigned: Sequence[Assignment], as_of: float) -> None:
        assignments = self._lease.took(assigned)
        self._board.add(assignments, as_of + LONGEST_IN_MEMORY_SECONDS)
        self._start_attempts()

    def _start_attempts(self) -> None:
        self._sending.start_attempts()

    def _written(self, results: Sequence[Result]) -> None:
        self._recorded += len(results)
        self._lease.recorded(result.assignment for result in results)
        again = [each.next_step.due_at for each in results if each.next_step.due_at is not None]
        if again and self._intake.sleeps_until is None:
            # A claim is running, and may have read the queue before these results were written.
            self._intake.wake()
        elif again:
            self._intake.wake_within((min(again) - self._clock.now()).total_seconds())
