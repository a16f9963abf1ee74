"""Workers, and all that can happen to them: crashes, suspension, clocks that are set."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from uuid import UUID

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.watchdog import Watchdog
from cuepost.ports.dispatch import Assignment, DeliveryKey, Lane
from cuepost.tuning import CHECKS_UNTIL_STALLED, LATEST_ANSWER_SECONDS, WATCHDOG_SECONDS
from tests.simulation.freezing import FreezableClock, FreezableStore, FreezableTransport, Freeze
from tests.simulation.observers import Observers
from tests.support.engine_harness import HOUR

# Less than a second would only make the second longer for which a worker may know old things.
LONGEST_MOMENT = 0.25
# A worker that waits for an answer asks every second whether it may go on.
LATEST_LAG = HOUR / 4
STEPS_OF_CLOCKS = (timedelta(seconds=7), timedelta(minutes=3), HOUR)


@dataclass(slots=True)
class Worker:
    dispatcher: Dispatcher
    task: asyncio.Task[None]
    freeze: Freeze
    transport: FreezableTransport


@dataclass(frozen=True, slots=True)
class Bell:
    """What is committed goes straight to one of them, and everybody hears of what waits.

    `late` has the answer of a commit come later, if it is to.
    """

    direct: Dispatcher
    awake: Sequence[Dispatcher]
    late: Callable[[Callable[[], None]], bool]

    def reserve(self, lane: Lane) -> UUID | None:
        return self.direct.reserve(lane)

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: datetime) -> None:
        take = partial(self.direct.take, worker, assignments, as_of)
        if not self.late(take):
            take()

    def give_back(self, lanes: Sequence[Lane]) -> None:
        self.direct.give_back(lanes)

    def reaches(self, worker: UUID) -> bool:
        return self._named(worker) is not None

    def hand_over(self, worker: UUID, keys: Sequence[DeliveryKey]) -> None:
        named = self._named(worker)
        assert named is not None
        hand_over = partial(named.hand_over, worker, keys)
        if not self.late(hand_over):
            hand_over()

    def work_for(self, lanes: Collection[Lane]) -> None:
        for each in self.awake:
            each.work_for(lanes)

    def _named(self, worker: UUID) -> Dispatcher | None:
        others = (each for each in self.awake if each is not self.direct)
        return next((each for each in others if each.lease.worker == worker), None)


@dataclass(slots=True)
class WorkerFaults(Observers):
    stalls: list[str] = field(default_factory=list)
    _working: list[Worker] = field(default_factory=list)
    _late_answers: int = 0
    _lags: int = 0
    _stolen_moments: int = 0
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    @property
    def lease(self) -> timedelta:
        return self.horizon / 4

    @property
    def patience(self) -> timedelta:
        """For so long several may be late together, and none is taken for dead by another one."""
        return self.lease / 4

    async def crash(self) -> None:
        """A worker is gone from one moment to the next; another one comes a little later."""
        await self.end_worker(gracefully=False)
        await self._pause()
        await self.start_worker()

    async def crash_at_work(self) -> None:
        """At any await of it, while there is much to do."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.report_many())
            await self.some_awaits()
            await self.end_worker(gracefully=False)
        await self._pause()
        await self.start_worker()

    async def report_amid_trouble(self) -> None:
        """The store begins to fail while someone relies on it."""
        await self.break_store()
        await self.report_many()

    async def restart(self) -> None:
        await self.end_worker(gracefully=True)
        await self._pause()
        await self.start_worker()

    async def suspend(self) -> None:
        """The machine sleeps for a while: everybody is late when it wakes up."""
        longest = 2 * self.lease if self.workers == 1 else self.patience
        self.engine.clock.advance(round(longest.total_seconds() * self.chance.random(), 3))

    async def stall_at_work(self) -> None:
        """As SIGSTOP and SIGCONT do: in the middle of whatever is under way much time passes."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.report_many())
            await self.some_awaits()
            await self.suspend()

    async def slow_threads(self) -> None:
        """Threads are suspended with the answers that they have: some of the next come late."""
        self._late_answers = self.chance.randrange(1, 4)
        await self.report_many()

    async def contend(self) -> None:
        """Others have the core: between any two steps time passes, and other steps are first."""
        self._stolen_moments = self.chance.randrange(5, 60)
        await self.report_many()

    async def _moment(self) -> None:
        if self._stolen_moments:
            self._stolen_moments -= 1
            self.engine.clock.advance(round(self.chance.random() * LONGEST_MOMENT, 3))
            await self.some_awaits()

    async def _lag(self) -> None:
        if self._is_answer_late():
            self._lags += 1
            try:
                await self.engine.clock.wait(self._some_heartbeats())
            finally:
                self._lags -= 1

    def _late(self, tell: Callable[[], None]) -> bool:
        if not self._is_answer_late():
            return False

        async def tell_later() -> None:
            await self.engine.clock.wait(self._some_heartbeats())
            tell()

        self._tasks.create_task(tell_later())
        return True

    def _is_answer_late(self) -> bool:
        if not self._late_answers or self.chance.random() < 0.5:
            return False
        self._late_answers -= 1
        return True

    def _some_heartbeats(self) -> float:
        """Longer than an answer may take if what it says is to be believed."""
        longest = min(self.lease, LATEST_LAG).total_seconds()
        return round(LATEST_ANSWER_SECONDS + longest * self.chance.random(), 3)

    async def freeze_or_thaw(self) -> None:
        """One worker stands still, perhaps for longer than its lease; others go on."""
        frozen = [each for each in self._working if each.freeze.holds]
        if frozen:
            self.chance.choice(frozen).freeze.thaw()
        elif len(self._working) > 1:
            self.chance.choice(self._working).freeze.freeze()
        self._hand_over()

    async def set_clock(self) -> None:
        """Someone notices that it was wrong; on every machine alike."""
        possible = [each for each in STEPS_OF_CLOCKS if self.workers == 1 or each < self.patience]
        by = self.chance.choice(possible)
        self.engine.clock.step(by if self.chance.random() < 0.5 else -by)

    async def start_worker(self) -> None:
        harness, freeze = self.engine.harness, Freeze(self._moment, self._lag)
        if not self.shared:
            await self.surely(
                lambda: harness.do(lambda transaction: transaction.queue.remove_all_workers())
            )
        transport = FreezableTransport(self.engine.transport, freeze, self._tasks)
        dispatcher = self.engine.dispatcher(
            FreezableStore(self.engine.store, freeze),
            attempts=self.attempts,
            cap=self.cap,
            lease=self.lease,
            longest_sleep=self.horizon,
            shared=self.shared,
            clock=FreezableClock(self.engine.clock, freeze),
            transport=transport,
        )
        task = self._tasks.create_task(dispatcher.run())
        self._working.append(Worker(dispatcher, task, freeze, transport))
        self._hand_over()

    async def end_worker(self, *, gracefully: bool) -> None:
        if not self._working:
            return
        worker = self._working.pop(self.chance.randrange(len(self._working)))
        self._hand_over()
        if gracefully:
            worker.freeze.thaw()
            worker.dispatcher.stop()
        else:
            worker.task.cancel()
            worker.transport.crash()
        await asyncio.wait([worker.task])

    async def notice_stalls(self) -> None:
        """Once nothing disturbs them any more, workers do what is due."""
        watched = [
            Watchdog(each.dispatcher, self.engine.store, self.engine.clock, self.engine.telemetry)
            for each in self._working
        ]
        for _ in range(CHECKS_UNTIL_STALLED + 1):
            for watchdog in watched:
                await watchdog.check()
            await self.engine.clock.wait(WATCHDOG_SECONDS)
        self.stalls += [each.stalled for each in watched if each.stalled]

    def thaw_all(self) -> None:
        self._late_answers = self._stolen_moments = 0
        for worker in self._working:
            worker.freeze.thaw()
        self._hand_over()

    def _hand_over(self) -> None:
        """What the service commits goes straight to the one that came last."""
        awake = [each.dispatcher for each in self._working if not each.freeze.holds]
        self.engine.store.handover = Bell(awake[-1], awake, self._late) if awake else NoHandover()

    async def _pause(self) -> None:
        await self.engine.later(timedelta(milliseconds=self.chance.choice((0, 700, 90_000))))
