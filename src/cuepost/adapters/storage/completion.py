"""Work on a connection that must have ended before anybody else may use that connection."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


def _nothing() -> None: ...


async def to_the_end(work: Awaitable[T], on_cancel: Callable[[], None] = _nothing) -> T:
    """Wait for it even when the caller is cancelled meanwhile; the cancellation comes after it."""
    running = asyncio.ensure_future(work)  # noqa: TID251  # it never outlives this call
    cancelled: asyncio.CancelledError | None = None
    while not running.done():
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError as error:
            cancelled = error
            on_cancel()
    if cancelled is None:
        return running.result()
    if not running.cancelled():
        running.exception()
    raise cancelled
