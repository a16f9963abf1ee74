"""A month in the life of the service, by chance but repeatable: one number decides everything."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.tables import queue
from cuepost.domain.errors import Refused
from cuepost.engine.dispatcher import Dispatcher
from tests.simulation.owners import Owners
from tests.support.stage import HOUR, Stage
from tests.support.store_rows import rows
from tests.support.watched_store import never

STEPS = 24
LONGEST_DRAIN = 200


@dataclass(slots=True)
class Worker:
    dispatcher: Dispatcher
    task: asyncio.Task[None]


@dataclass(slots=True)
class Simulation(Owners):
    workers: int = 1
    _working: list[Worker] = field(default_factory=list)
    _tasks: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)

    async def run(self) -> list[str]:
        """Everything that was promised and not kept."""
        async with self._tasks:
            for _ in range(self.workers):
                await self._start_worker()
            await self.add_endpoint()
            await self.add_project()
            for _ in range(STEPS):
                await self._step()
            await self._drain()
            for _ in range(self.workers):
                await self._end_worker(gracefully=True)
        history = await self.ledger.history(self.stage, self.cap)
        return history.broken_promises()

    async def _step(self) -> None:
        # Short pauses are the most interesting ones, yet a month has to pass.
        pause = self.horizon.total_seconds() / STEPS * self.chance.random() ** 3 * 4
        await self.stage.later(timedelta(milliseconds=int(pause * 1000)))
        await self.stage.store.prepare_days(self.now)
        action = self._chosen()
        self.note(action.__name__)
        with suppress(Refused):
            await action()

    def _chosen(self) -> Callable[[], Awaitable[None]]:
        actions: dict[Callable[[], Awaitable[None]], int] = {
            self.report: 20,
            self.report_many: 16,
            self.two_at_once: 8,
            self.add_project: 6,
            self.add_endpoint: 4,
            self.change_manners: 6,
            self.disable_or_enable: 4,
            self.delete_endpoint: 1,
            self.move_endpoint: 2,
            self.rotate: 4,
            self.end_overlap: 2,
            self.send_test: 2,
            self.retry: 6,
            self.retry_many: 2,
            self.delete_project: 2,
            self.change_access: 4,
            self.keep_house: 4,
            self.crash: 4,
            self.restart: 2,
            self.suspend: 3,
            self.break_store: 5,
        }
        [action] = self.chance.choices(list(actions), list(actions.values()))
        return action

    async def two_at_once(self) -> None:
        """At the very same instant, in whichever order they come through."""
        other = self.chance.choice(
            (
                self.disable_or_enable,
                self.move_endpoint,
                self.rotate,
                self.change_access,
                self.delete_project,
                self.retry,
                self.crash,
            )
        )
        self.note(other.__name__)
        await asyncio.gather(self.report_many(), _unrefused(other))

    async def crash(self) -> None:
        """A worker is gone from one moment to the next; another one comes a little later."""
        await self._end_worker(gracefully=False)
        await self._pause()
        await self._start_worker()

    async def restart(self) -> None:
        await self._end_worker(gracefully=True)
        await self._pause()
        await self._start_worker()

    async def suspend(self) -> None:
        """The machine sleeps for a while: everybody is late when it wakes up."""
        longest = 2 * self.lease if self.workers == 1 else self.lease / 4
        self.stage.clock.advance(longest.total_seconds() * self.chance.random())

    @property
    def lease(self) -> timedelta:
        return self.horizon / 4

    async def _pause(self) -> None:
        await self.stage.later(timedelta(milliseconds=self.chance.choice((0, 700, 90_000))))

    async def _start_worker(self) -> None:
        world = self.stage.world
        if self.stage.is_embedded:
            await self.surely(lambda: world.do(lambda transaction: transaction.queue.dismiss_all()))
        dispatcher = self.stage.dispatcher(
            attempts=self.attempts, cap=self.cap, lease=self.lease, longest_sleep=self.horizon
        )
        self._working.append(Worker(dispatcher, self._tasks.create_task(dispatcher.run())))
        self.stage.store.handover = dispatcher

    async def _end_worker(self, *, gracefully: bool) -> None:
        place = self.chance.randrange(len(self._working)) if self._working else None
        if place is None:
            return
        worker = self._working.pop(place)
        others = [each.dispatcher for each in self._working]
        self.stage.store.handover = others[0] if others else NoHandover()
        if gracefully:
            worker.dispatcher.stop()
        else:
            worker.task.cancel()
        await asyncio.wait([worker.task])

    async def _drain(self) -> None:
        """Until nothing is on its way any more; half of the receivers mend their manners."""
        watch = self.stage.store.watch
        watch.fails = watch.loses = never
        for url in self.manners:
            if self.fate.random() < 0.5:
                self.manners[url] = "well"
        for _ in range(LONGEST_DRAIN):
            await self.keep_house()
            await self.stage.later(max(HOUR / 2, self.lease))
            if not await self._is_busy():
                break

    async def _is_busy(self) -> bool:
        if await self.stage.world.see(lambda t: t.bulk_retries.running(1)):
            return True
        return bool(await rows(self.stage.store.inner, sa.select(queue.c.delivery_id).limit(1)))


async def _unrefused(action: Callable[[], Awaitable[None]]) -> None:
    with suppress(Refused):
        await action()


async def simulated(seed: int, stage: Stage, workers: int = 1) -> tuple[list[str], list[str]]:
    """What was broken, and the whole course of events."""
    simulation = Simulation(seed, stage, workers=workers)
    broken = await simulation.run()
    return broken, simulation.trace
