"""Sends a file to the socket of a client with sendfile, which does not copy the bytes."""

import asyncio
from typing import Protocol, cast

from starlette.types import Scope

from cuepost.ports.media import MediaFile

EXTENSION = "cuepost.line"
# The socket is non-blocking, so its send buffer usually limits a call to less than this.
AT_ONCE = 1024 * 1024


class SocketHandle(Protocol):
    """The socket of a response whose head has been sent."""

    def descriptor(self) -> int | None:
        """A descriptor that the caller closes; None while earlier data is still buffered."""
        ...

    def sent(self, count: int) -> None:
        """Report that `count` bytes of the body were sent through the descriptor."""
        ...


def line_of(scope: Scope) -> SocketHandle | None:
    """The socket handle, if the server offers one."""
    offered = (scope.get("extensions") or {}).get(EXTENSION)
    return None if offered is None else cast(SocketHandle, offered["line"])


async def sent(file: MediaFile, descriptor: int, start: int, count: int) -> int:
    """Send up to `count` bytes; returns how many, 0 if the send buffer is full."""
    try:
        done = await file.send(descriptor, start, min(count, AT_ONCE))
    except BlockingIOError:
        return 0
    if not done:
        raise EOFError
    return done


async def room(descriptor: int, hung_up: "asyncio.Task[None]", seconds: float) -> bool:
    """Wait for room in the send buffer or for the client to disconnect; False at the timeout."""
    loop = asyncio.get_running_loop()
    woken = loop.create_future()

    def wake(*_: object) -> None:
        if not woken.done():
            woken.set_result(None)

    loop.add_writer(descriptor, wake)
    hung_up.add_done_callback(wake)
    try:
        async with asyncio.timeout(seconds):
            await woken
    except TimeoutError:
        return False
    finally:
        loop.remove_writer(descriptor)
        hung_up.remove_done_callback(wake)
    return True
