"""A line from a file to the socket of a client: the system moves the bytes, and a thread waits."""

import asyncio
from typing import Protocol, cast

from starlette.types import Scope

from cuepost.ports.media import MediaFile

EXTENSION = "cuepost.line"
# With a socket that does not block it is rather the room there that ends a turn.
AT_ONCE = 1024 * 1024


class SocketHandle(Protocol):
    """Of one answer, whose head has been sent."""

    def descriptor(self) -> int | None:
        """Of the socket, to be closed by the caller; None while something else is to leave yet."""
        ...

    def sent(self, count: int) -> None:
        """So much of the body has gone this way."""
        ...


def line_of(scope: Scope) -> SocketHandle | None:
    """Where the server offers one."""
    offered = (scope.get("extensions") or {}).get(EXTENSION)
    return None if offered is None else cast(SocketHandle, offered["line"])


async def sent(file: MediaFile, descriptor: int, start: int, count: int) -> int:
    """Fewer bytes than asked for, or none, where the socket has no room for more."""
    try:
        done = await file.send(descriptor, start, min(count, AT_ONCE))
    except BlockingIOError:
        return 0
    if not done:
        raise EOFError
    return done


async def room(descriptor: int, hung_up: "asyncio.Task[None]", seconds: float) -> bool:
    """Whether there is some before the time is up, or nobody who would need it."""
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
