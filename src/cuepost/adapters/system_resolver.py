"""Names to addresses, through the operating system.

Each look-up runs in a thread of its own, because one that hangs cannot be ended from outside. The
threads are daemons: a process that stops does not wait for them.
"""

import asyncio
import socket
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from threading import Thread
from typing import Final

from cuepost.domain.egress_policy import Address
from cuepost.ports.transport import CannotResolve

MOST_LOOK_UPS_AT_ONCE: Final = 256


class SystemResolver:
    """Whoever asks for a name that is being looked up shares that look-up: it holds one thread."""

    def __init__(self, most_at_once: int = MOST_LOOK_UPS_AT_ONCE) -> None:
        self._most_at_once = most_at_once
        self._running = 0
        self._queue: deque[str] = deque()
        self._asked: dict[str, asyncio.Future[Sequence[Address]]] = {}

    async def addresses(self, host: str) -> Sequence[Address]:
        asked = self._asked.get(host)
        if asked is None:
            loop = asyncio.get_running_loop()
            asked = self._asked[host] = loop.create_future()
            self._queue.append(host)
            self._start_next(loop)
        # Shielded: one delivery that gives up must not take the answer from the others.
        found = await asyncio.shield(asked)
        if not found:
            raise CannotResolve
        return found

    def _start_next(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._queue and self._running < self._most_at_once:
            self._running += 1
            host = self._queue.popleft()
            Thread(target=self._run, args=(loop, host), name="resolver", daemon=True).start()

    def _run(self, loop: asyncio.AbstractEventLoop, host: str) -> None:
        found = look_up(host)
        # The loop may be closed by now; then no caller waits for the result.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(self._end, loop, host, found)

    def _end(self, loop: asyncio.AbstractEventLoop, host: str, found: Sequence[Address]) -> None:
        self._running -= 1
        self._asked.pop(host).set_result(found)
        self._start_next(loop)


def look_up(host: str) -> Sequence[Address]:
    """None at all when there is an error, or an answer that is no address.

    A scope id (`fe80::1%eth0`) stays where it is: the policy refuses it.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))
    except (OSError, ValueError):
        return ()
