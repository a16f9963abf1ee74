"""Who goes first in this process: what is being accepted, before work that can wait.

A claim or a record that began while a report waits for the disk would hold up the attempt that
follows it, because all of them run on one event loop. One that has begun already may be given up.
An attempt of a backlog would do the same, and the thread that syncs the log waits for it as well.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from cuepost.ports.runtime import Clock
from cuepost.ports.store import GaveWay, Manner
from cuepost.tuning import LONGEST_YIELD_SECONDS

T = TypeVar("T")


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

    @property
    def is_taken(self) -> bool:
        return self._coming > 0

    async def behind(self, work: Callable[[Manner], Awaitable[T]]) -> T:
        """Do this once they have passed; if more of them come meanwhile, anew, and to the end."""
        if await self.give():
            try:
                return await work(Manner.YIELDING)
            except GaveWay:
                await self.give()
        return await work(Manner.REPEATABLE)

    async def give(self) -> bool:
        """Let them pass, but do not wait for long: there may be no end of them."""
        return not self._coming or await self._clock.wait_for(self._is_clear, LONGEST_YIELD_SECONDS)
