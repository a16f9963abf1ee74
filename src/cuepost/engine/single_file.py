"""Many that are ready at once begin one by one, and all else that is ready gets in between."""

import asyncio


class SingleFile:
    def __init__(self) -> None:
        self._turn = asyncio.Lock()

    async def enter(self) -> None:
        """One in each turn of the event loop; who comes alone does not wait."""
        await self._turn.acquire()
        asyncio.get_running_loop().call_soon(self._turn.release)
