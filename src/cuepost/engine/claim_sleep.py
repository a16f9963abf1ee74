"""The sleep between two claims, which anything may cut short."""

import asyncio

from cuepost.ports.system import Clock


class ClaimSleep:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._woken = asyncio.Event()
        self.until: float | None = None

    def wake(self) -> None:
        """Now, or at once when it begins."""
        self._woken.set()

    def expect(self) -> None:
        """Whoever wakes it from here on means the next one."""
        self._woken.clear()

    async def sleep(self, seconds: float) -> None:
        self.until = self._clock.monotonic() + seconds
        try:
            await self._clock.wait_for(self._woken, seconds)
        finally:
            self.until = None

    def no_longer_than(self, seconds: float) -> None:
        """One that lasts longer ends now, so that the next is shorter."""
        if self.until is not None and self._clock.monotonic() + seconds < self.until:
            self.wake()
