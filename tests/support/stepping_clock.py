"""A virtual clock whose wall time is set while time goes on: forwards, or back."""

import asyncio
from dataclasses import dataclass
from datetime import datetime, timedelta

from cuepost.testing import START, VirtualClock


class SteppingClock(VirtualClock):
    """Steps change what `now` shows, not `monotonic` or how long a wait takes."""

    def __init__(self, start: datetime = START) -> None:
        super().__init__(start)
        self._wrong_by = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self._wrong_by

    def restart(self) -> None:
        super().restart()
        self._wrong_by = timedelta(0)

    def step(self, by: timedelta) -> None:
        self._wrong_by += by

    @property
    def steady(self) -> "SteadyClock":
        return SteadyClock(self)


@dataclass(frozen=True, slots=True)
class SteadyClock:
    """The same time as it really passes, whatever the clock shows."""

    clock: SteppingClock

    def now(self) -> datetime:
        return self.clock._now

    def monotonic(self) -> float:
        return self.clock.monotonic()

    async def wait(self, seconds: float) -> None:
        await self.clock.wait(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        return await self.clock.wait_for(event, seconds)
