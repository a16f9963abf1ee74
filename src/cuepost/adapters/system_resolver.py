"""Resolves names through the operating system.

Each lookup runs in its own thread, because a lookup that hangs cannot be cancelled. The threads
are daemons, so that a process that stops does not wait for them.
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
    """Concurrent calls for the same name share one lookup, and thus one thread."""

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
        # Shielded, because a cancelled caller must not cancel the lookup of the others.
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
    """Empty if the lookup fails or returns something that is not an address.

    A scope id (`fe80::1%eth0`) is kept: the policy refuses such addresses.
    """
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return tuple(dict.fromkeys(ip_address(entry[4][0]) for entry in found))
    except (OSError, ValueError):
        return ()
