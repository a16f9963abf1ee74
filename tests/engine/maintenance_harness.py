"""A maintenance_runner on a virtual clock, and the sign that it has nothing to do for now."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta

import anyio

from cuepost.engine.maintenance import MaintenanceJob, MaintenanceRunner
from cuepost.testing import VirtualClock

PATIENCE_SECONDS = 20


class RestingClock:
    """Knows who waits for it: the runner is at rest while every job waits for a later time."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._due: list[datetime] = []
        self._changed = asyncio.Event()

    def now(self) -> datetime:
        return self._clock.now()

    def monotonic(self) -> float:
        return self._clock.monotonic()

    async def wait(self, seconds: float) -> None:
        due = self.now() + timedelta(seconds=seconds)
        self._due.append(due)
        self._changed.set()
        try:
            await self._clock.wait(seconds)
        finally:
            self._due.remove(due)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        return await self._clock.wait_for(event, seconds)

    async def wait_for_rest(self, jobs: int) -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            while len(self._due) < jobs or min(self._due) <= self.now():
                self._changed.clear()
                await self._changed.wait()


class MaintenanceHarness:
    def __init__(self, clock: VirtualClock, jobs: Sequence[MaintenanceJob]) -> None:
        self._clock = clock
        self._resting = RestingClock(clock)
        self._jobs = len(jobs)
        self.maintenance_runner = MaintenanceRunner(self._resting, jobs)

    async def rest(self) -> None:
        await self._resting.wait_for_rest(self._jobs)

    async def later(self, duration: timedelta) -> None:
        """Let the time pass and everything that is due happen."""
        self._clock.advance(duration.total_seconds())
        await self.rest()


@asynccontextmanager
async def running_maintenance(
    clock: VirtualClock, jobs: Sequence[MaintenanceJob]
) -> AsyncIterator[MaintenanceHarness]:
    runner = MaintenanceHarness(clock, jobs)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(runner.maintenance_runner.run())
        await runner.rest()
        yield runner
        running.cancel()
