"""Finds what is due, keeps the lanes filled, and runs attempts until it is told to stop."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.engine.attempt_pipeline import AttemptPipeline
from cuepost.engine.capacity import Capacity
from cuepost.engine.claim_sleep import ClaimSleep
from cuepost.engine.engine_state import EngineState
from cuepost.engine.handed_over import HandedOver
from cuepost.engine.heartbeat import Heartbeat
from cuepost.engine.intake import Intake
from cuepost.engine.lane_board import LaneBoard
from cuepost.engine.outcome_recorder import OutcomeRecorder
from cuepost.engine.sending import Sending
from cuepost.engine.worker_lease import ENDLESS, LONG_AGO, WorkerLease
from cuepost.log_lines import log_store_error
from cuepost.ports.dispatch import Assignment, DeliveryKey, Lane, Result
from cuepost.ports.store import Contention, Store, StoreError
from cuepost.ports.system import Clock, IdSource
from cuepost.ports.telemetry import Telemetry
from cuepost.tuning import (
    BUSY_FROM,
    LEASE_SECONDS,
    LEAVING_PAUSE_SECONDS,
    LONGEST_IN_MEMORY_SECONDS,
    PARTING_SECONDS,
    PAUSE_AFTER_CONTENTION_SECONDS,
    PAUSE_AFTER_FAILURE_SECONDS,
    UNRECORDED_PER_ATTEMPT,
)

log = logging.getLogger("cuepost.engine")


class Dispatcher:
    def __init__(
        self,
        store: Store,
        pipeline: AttemptPipeline,
        clock: Clock,
        ids: IdSource,
        *,
        capacity: Capacity,
        longest_sleep: timedelta,
        alone: bool,
        telemetry: Telemetry,
        lease: timedelta = timedelta(seconds=LEASE_SECONDS),
    ) -> None:
        """`alone` says that no other worker can be at this store, so that lanes need no asking."""
        self._store = store
        self._clock = clock
        self._capacity = capacity
        self._telemetry = telemetry
        self._longest_sleep = longest_sleep
        self._alone = alone
        self._lease = WorkerLease(clock, ids, ENDLESS if alone else lease)
        self._board = LaneBoard(capacity.per_endpoint, capacity.held_per_lane)
        self._sleep = ClaimSleep(clock)
        self._intake = Intake(
            store, clock, self._lease, self._board, most_held=capacity.held, alone=alone
        )
        self._heartbeat = Heartbeat(store, clock, self._lease, self._intake, self._sleep)
        self._handed_over = self._new_handed_over()
        self._recorder = self._new_recorder()
        self._sending = self._new_sending(pipeline)
        self._stopping = False
        self._recorded = 0
        self.running = False

    def _new_handed_over(self) -> HandedOver:
        return HandedOver(
            self._store,
            self._clock,
            lease=self._lease,
            intake=self._intake,
            sleep=self._sleep,
            begin=self._start,
        )

    def _new_recorder(self) -> OutcomeRecorder:
        return OutcomeRecorder(
            self._store,
            self._clock,
            self._telemetry,
            most_unrecorded=UNRECORDED_PER_ATTEMPT * self._capacity.attempts,
            alone=self._alone,
            is_busy=lambda: self._board.load >= BUSY_FROM or self._intake.has_backlog,
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
            sleep=self._sleep,
        )

    def reserve(self, endpoint: Lane) -> UUID | None:
        if not self._may_take(endpoint):
            return None
        self._board.reserve(endpoint)
        return self._lease.worker

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        self.give_back([each.lane for each in assignments])
        # Reserved under a lease that is gone, they are released with the rest of it.
        if self.running and worker == self._lease.worker:
            self._start(self._lease.not_disowned(assignments), self._since(as_of))

    def _since(self, as_of: datetime) -> float:
        """The wall clock has named the instant; one in the future says nothing about the age."""
        age = (self._clock.now() - as_of).total_seconds()
        return self._clock.monotonic() - age if age >= 0 else LONG_AGO

    def give_back(self, endpoints: Sequence[Lane]) -> None:
        self._board.give_back(endpoints)

    def work_for(self, endpoints: Collection[Lane]) -> None:
        self._intake.wake_up(endpoints)
        self._sleep.wake()

    def reaches(self, worker: UUID) -> bool:
        """It is for its own process; that of others needs a way to them."""
        return False

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        """Another process has leased them to this worker, if it still has this name."""
        self._handed_over.hear(worker, keys)

    def workers_changed(self) -> None:
        """Others have come or gone, or nothing is known of what was announced for a while."""
        self._heartbeat.beat_now()
        self._sleep.wake()

    def announce_to(self, others: Callable[[Collection[Lane]], None]) -> None:
        """They are to hear of lanes that this worker has let go for them."""
        self._intake.announce = others

    def owns(self, endpoint: Lane) -> bool:
        """The lane is in this worker's share."""
        return self._intake.owns(endpoint)

    @property
    def state(self) -> EngineState:
        return EngineState(
            worker=self._lease.worker,
            running=self.running,
            stopping=self._stopping,
            lease_held=self._lease.is_held,
            progress=self._sending.begun + self._recorded,
            in_flight=self._sending.in_flight,
            held=self._board.load,
            lanes_ready=self._board.ready,
            unrecorded=self._recorder.unrecorded,
            memory_full=self._intake.is_full,
            backlog=self._intake.has_backlog,
            sleeps_until=self._sleep.until,
        )

    @property
    def clock_ahead_seconds(self) -> float:
        """Of the clock that all workers share."""
        return self._lease.clock_ahead.total_seconds()

    def has_capacity_for(self, endpoint: Lane | None = None) -> bool:
        is_full = self._sending.in_flight >= self._capacity.attempts
        return not is_full and (endpoint is None or self._board.has_slot(endpoint))

    def stop(self) -> None:
        """Finish what is in flight, give back the rest."""
        self._stopping = True
        self._sleep.wake()

    async def run(self) -> None:
        """Until `stop` is called; then in-flight attempts end within their own limit."""
        async with asyncio.TaskGroup() as tasks:
            loops = [self._recorder.run(), self._recorder.run_singles()]
            if not self._alone:
                loops += [self._heartbeat.run(), self._handed_over.run()]
            beside = [tasks.create_task(loop) for loop in loops]
            self.running = True
            self._sending.open(tasks.create_task)
            try:
                await self._claim_until_stopped()
            finally:
                self.running = False
                self._sending.close()
            self._recorder.hurry()
            await self._leave()
            await self._recorder.finish(PARTING_SECONDS)
            for task in beside:
                task.cancel()
        await self._part()

    async def _leave(self) -> None:
        """Others go on at once with everything that is not in flight here."""
        self._lease.give_back(self._board.drop_waiting())
        while not self._alone and self._sending.in_flight:
            # Before the store is asked: an attempt may end meanwhile.
            self._sending.attempt_ended.clear()
            await self._let_others_have_all_but(self._intake.leave())
            if self._sending.in_flight:
                await self._sending.attempt_ended.wait()
            await self._clock.wait(LEAVING_PAUSE_SECONDS)
        await self._sending.wait_until_quiet()

    async def _let_others_have_all_but(self, busy: Collection[Lane]) -> None:
        now = self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                returned = await self._lease.release_returned(transaction.queue, now)
                await transaction.queue.leave(self._lease.worker, busy)
        except StoreError as error:
            log_store_error(log, "lanes_not_released", error, "leave")
        else:
            self._lease.returned(returned)

    async def _part(self) -> None:
        """What was not sent goes back as it was; the rest is what could not be recorded."""
        now = self._clock.now()
        try:
            async with self._store.transaction() as transaction:
                await self._lease.release_returned(transaction.queue, now)
                await transaction.queue.remove_worker(self._lease.worker, now)
        except StoreError as error:
            log_store_error(log, "left_without_word", error, "leave")

    async def _claim_until_stopped(self) -> None:
        while not self._stopping:
            self._sleep.expect()
            try:
                asks_again = await self._intake.claim(self._start)
                if not asks_again:
                    await self._sleep.sleep(self._intake.seconds_to_sleep(self._longest_sleep))
            except Contention as error:
                log.info("event=claim_contended error=%s", error)
                await self._clock.wait(PAUSE_AFTER_CONTENTION_SECONDS)
            except StoreError as error:
                log_store_error(log, "claim_failed", error, "claim")
                await self._clock.wait(PAUSE_AFTER_FAILURE_SECONDS)

    def _may_take(self, endpoint: Lane) -> bool:
        """While lease, lane and memory allow it, and nothing older waits in the store."""
        return (
            self.running
            and not self._stopping
            and self._lease.is_held
            and (self._alone or self._intake.holds(endpoint))
            and not self._intake.has_more(endpoint)
            and self._board.load < self._capacity.held
            and self._board.room_of(endpoint) > 0
        )

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
        if again and self._sleep.until is None:
            # What is being claimed may have been looked for before that was written.
            self._sleep.wake()
        elif again:
            self._sleep.no_longer_than((min(again) - self._clock.now()).total_seconds())
