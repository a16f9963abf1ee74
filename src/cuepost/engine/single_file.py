"""Attempts of a backlog begin one by one, so that whatever else is ready gets in between.

Those that were sent together are answered together, and would hold up others if the next ones began
together, or while a report is being accepted. Where there are no others, that would only cost time.
"""

import asyncio

from cuepost.engine.right_of_way import RightOfWay
from cuepost.ports.runtime import Clock
from cuepost.tuning import COMPANY_SECONDS


class SingleFile:
    def __init__(self, clock: Clock, way: RightOfWay) -> None:
        self._clock = clock
        self._way = way
        self._company_at = clock.monotonic() - COMPANY_SECONDS
        self._turn = asyncio.Lock()

    def in_company(self) -> None:
        """Somebody is served who has no backlog."""
        self._company_at = self._clock.monotonic()

    async def enter(self) -> None:
        """Behind what is being accepted, one in each turn of the event loop, or alone at once."""
        if self.has_company:
            await self._way.give()
            await self._turn.acquire()
            asyncio.get_running_loop().call_soon(self._turn.release)

    @property
    def has_company(self) -> bool:
        return self._clock.monotonic() < self._company_at + COMPANY_SECONDS
