"""The sleep between two claims, which a wake-up ends early."""

import asyncio

from cuepost.ports.system import Clock


class ClaimSleep:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken = asyncio.Event()
        self.until: float | None = None

    def wake(self) -> None:
        """End the current sleep, or the next one as soon as it begins."""
        self._woken.set()

    def expect(self) -> None:
        """A wake-up after this call is for the next sleep."""
        self._woken.clear()

    async def sleep(self, seconds: float) -> None:
        self.until = self._clock.monotonic() + seconds
        try:
            await self._clock.wait_for(self._woken, seconds)
        finally:
            self.until = None

    def no_longer_than(self, seconds: float) -> None:
        """End a sleep that would last longer, so that the next can be shorter."""
        if self.until is not None and self._clock.monotonic() + seconds < self.until:
            self.wake()
