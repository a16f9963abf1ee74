"""Who goes first in this process: what is being accepted, before work that can wait.

A claim or a record that began while a report waits for the disk would hold up the attempt that
follows it, because all of them run on one event loop.
"""

import asyncio

from cuepost.ports.runtime import Clock

LONGEST_SECONDS = 0.02


class RightOfWay:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._coming = 0
        self._is_clear = asyncio.Event()

    def expect(self) -> None:
        """Something is being accepted, to be sent at once perhaps."""
        self._coming += 1
        self._is_clear.clear()

    def passed(self) -> None:
        """It was accepted and is on its way, or it was not."""
        self._coming -= 1
        if not self._coming:
            self._is_clear.set()

    async def give(self) -> None:
        """Let them pass, but do not wait for long: there may be no end of them."""
        if self._coming:
            await self._clock.wait_for(self._is_clear, LONGEST_SECONDS)
