"""Work on a connection or a descriptor that must have ended before anybody else may use it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")

_AGAIN_SECONDS = 0.01


def _nothing() -> None: ...


async def to_the_end(work: Awaitable[T], on_cancel: Callable[[], None] = _nothing) -> T:
    """Wait for it even when the caller is cancelled meanwhile; the cancellation comes after it."""
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
        # More than once: what was told to stop may not have started by then.
        on_cancel()
    if not running.cancelled():
        running.exception()
    raise cancelled
