"""Work on a connection or a descriptor that must end before the resource may be used again."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_AGAIN_SECONDS = 0.01


def _nothing() -> None: ...


async def run_to_completion(work: Awaitable[T], on_cancel: Callable[[], None] = _nothing) -> T:
    """Waits for the work even if the caller is cancelled; then the cancellation is raised."""
    running = asyncio.ensure_future(work)  # noqa: TID251  # it never outlives this call
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError as error:
        if running.cancelled():
            raise
        cancelled = error
        on_cancel()
    while not running.done():
        try:
            await asyncio.wait([running], timeout=_AGAIN_SECONDS)
        except asyncio.CancelledError as error:
            cancelled = error
        # Repeated, because the work may not have started when it was first told to stop.
        on_cancel()
    if not running.cancelled():
        running.exception()
    raise cancelled
