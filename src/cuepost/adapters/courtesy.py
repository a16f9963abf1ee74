"""How work that can wait makes room for others between two of its steps."""

import asyncio
import os


async def let_others_run() -> None:
    """Other processes get the core first, then whatever else is ready on this event loop."""
    os.sched_yield()
    await asyncio.sleep(0)  # noqa: TID251  # no time is waited for, only a turn
