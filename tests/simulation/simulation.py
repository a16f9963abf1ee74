"""A month in the life of the service, by chance but repeatable: one number decides everything."""

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import sqlalchemy as sa

from cuepost.adapters.storage.tables import queue
from cuepost.domain.errors import Refused
from tests.simulation.worker_faults import WorkerFaults
from tests.support.engine_harness import HOUR, EngineHarness
from tests.support.store_rows import rows
from tests.support.watched_store import Endless

STEPS = 24
LONGEST_DRAIN = 200
WORKERS = (1, 2, 1, 3)
# Hardly any month takes a quarter of it.
MOST_OPERATIONS = 100_000

Action = Callable[[], Awaitable[None]]


@dataclass(slots=True)
class Simulation(WorkerFaults):
    """`calm` ones are without worker_faults.

    One stays `undisturbed` while nothing happens for which anything may be sent again.
    """

    calm: bool = field(init=False)
    undisturbed: bool = True

    async def run(self) -> list[str]:
        """Everything that was promised and not kept."""
        self.calm = self.chance.random() < 0.25
        self.engine.store.watch.most = self.engine.store.watch.operations + MOST_OPERATIONS
        endless: list[str] = []
        try:
            with self.overheard():
                await self._live()
        except* Endless:
            endless.append(f"I1 more than {MOST_OPERATIONS} operations, and no end of it")
        if endless:
            return endless
        async with self.looking_in() as (_, found):
            sent = zip(self.engine.sent, self.clocks, strict=True)
            seen = [self.ledger.seen(each, clock) for each, clock in sent]
        history = self.ledger.history(
            seen, found, cap=self.cap, sees_all=True, undisturbed=self.undisturbed
        )
        stalls = [f"I1 the engine has stalled: {each}" for each in self.stalls]
        return [*stalls, *history.broken_promises()]

    async def _live(self) -> None:
        async with self._tasks:
            await self.move_in()
            for _ in range(self.workers):
                await self.start_worker()
            for caller in self.callers.values():
                await self.add_endpoint(caller)
                await self.add_project(caller)
            for _ in range(STEPS):
                await self._step()
            await self._drain()
            for _ in range(self.workers):
                await self.end_worker(gracefully=True)

    async def _step(self) -> None:
        # Short pauses are the most interesting ones, yet a month has to pass.
        pause = self.horizon.total_seconds() / STEPS * self.chance.random() ** 3 * 4
        await self.engine.later(timedelta(milliseconds=int(pause * 1000)))
        await self.engine.store.prepare_days(self.now)
        action = self._chosen()
        self.undisturbed &= action not in self._excuses()
        self.note(action.__name__)
        with suppress(Refused):
            await action()

    def _excuses(self) -> Collection[Action]:
        """No one can take over what the only worker holds, however long it stalls.

        A worker that ends waits only seconds for a late store to record its results.
        """
        if self.shared:
            return self._worker_faults()
        always = (self.crash, self.crash_at_work, self.break_store, self.report_amid_trouble)
        return (*always, self.restart) if self._lags else always

    def _chosen(self) -> Action:
        actions = self._doings() | ({} if self.calm else self._worker_faults())
        [action] = self.chance.choices(list(actions), list(actions.values()))
        return action

    def _doings(self) -> dict[Action, int]:
        return {
            self.report: 10,
            self.report_many: 18,
            self.report_and_hang_up: 4,
            self.two_at_once: 10,
            self.add_project: 4,
            self.add_endpoint: 4,
            self.change_behaviour: 4,
            self.disable_or_enable: 8,
            self.delete_endpoint: 1,
            self.move_endpoint: 2,
            self.rotate: 4,
            self.end_overlap: 2,
            self.send_test: 2,
            self.retry: 6,
            self.retry_many: 2,
            self.delete_project: 7,
            self.change_access: 4,
            self.run_maintenance: 4,
            self.forget: 5,
            self.full_scan: 2,
        }

    def _worker_faults(self) -> dict[Action, int]:
        return {
            self.crash: 3,
            self.restart: 2,
            self.crash_at_work: 4,
            self.suspend: 3,
            self.freeze_or_thaw: 4 if self.workers > 1 else 0,
            self.set_clock: 3,
            self.break_store: 3,
            self.report_amid_trouble: 6,
            self.stall_at_work: 4,
            self.slow_threads: 4,
            self.contend: 4,
        }

    async def two_at_once(self) -> None:
        """At the very same instant, in whichever order they come through."""
        others: list[Action] = [
            self.disable_or_enable,
            self.move_endpoint,
            self.rotate,
            self.change_access,
            self.delete_project,
            self.retry,
        ]
        if not self.calm:
            others.append(self.crash)
        other = self.chance.choice(others)
        self.undisturbed &= other != self.crash
        self.note(other.__name__)
        await asyncio.gather(self.report_many(), _unrefused(other))

    async def _drain(self) -> None:
        """Until nothing is on its way any more; half of the receivers fix their behaviours."""
        self.fix_store()
        self.thaw_all()
        for url in self.behaviours:
            if self.fate.random() < 0.5:
                self.behaviours[url] = "well"
        for _ in range(LONGEST_DRAIN):
            await self.run_maintenance()
            await self.engine.later(max(HOUR / 2, self.lease))
            # Several workers poll so rarely here that work may wait for hours.
            if not self.shared:
                await self.notice_stalls()
            if not await self._is_busy():
                break
        await self.full_scan()

    async def _is_busy(self) -> bool:
        if await self.engine.harness.see(lambda t: t.bulk_retries.running(1)):
            return True
        return bool(await rows(self.engine.store.inner, sa.select(queue.c.id).limit(1)))


async def _unrefused(action: Action) -> None:
    with suppress(Refused):
        await action()


async def simulated(
    seed: int, engine: EngineHarness, workers: int | None = None
) -> tuple[list[str], list[str]]:
    """What was broken, and the whole course of events."""
    simulation = Simulation(seed, engine, workers=workers or WORKERS[seed % len(WORKERS)])
    broken = await simulation.run()
    return broken, simulation.trace
