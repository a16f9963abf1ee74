"""A receiver in a separate process: records every request and answers according to its path.

`/ok…` answers 200 at once, `/ok-later…` and `/slow…` after 50 ms, `/hang…` never, `/drip…` with one
byte per second. It parses only the necessary parts of HTTP, so that it does not limit a benchmark.
At the end it writes what it received as one msgpack array of (arrival, raw request).
"""

import asyncio
import gc
import signal
import socket
import ssl
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import msgspec
import uvloop

ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
LAST_ANSWER = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
DRIPPED = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-slow: " + b"a" * 600
BACKLOG = 4_096
SLOW_SECONDS = 0.05
LENGTH = b"content-length: "


class ReceiverProtocol(asyncio.Protocol):
    def __init__(self, seen: list[tuple[float, bytes]], close_after: bool) -> None:
        self._seen = seen
        self._close_after = close_after
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        at = time.time()
        while end := _end_of_request(data):
            # Usually the data is exactly one request, which then is not copied.
            request = data if end == len(data) else data[:end]
            self._seen.append((at, request))
            self._answer(request)
            data = data[end:]
        self._buffer = data

    def _answer(self, request: bytes) -> None:
        if self._transport is None:
            return
        path = request[5:9]
        if path in (b"/ok-", b"/slo"):
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._write, ANSWER)
        elif path.startswith(b"/ok"):
            if self._close_after:
                self._transport.write(LAST_ANSWER)
                self._transport.close()
            else:
                self._transport.write(ANSWER)
        elif path == b"/dri":
            self._drip(0)

    def _write(self, data: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(data)

    def _drip(self, place: int) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(DRIPPED[place : place + 1])
            asyncio.get_running_loop().call_later(1, self._drip, place + 1)


def _end_of_request(data: bytes) -> int:
    """Zero while it is incomplete."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return 0
    place = data.find(LENGTH, 0, head)
    if place < 0:
        # Other clients write header names in another case.
        place = data[:head].lower().index(LENGTH)
    length = int(data[place + len(LENGTH) : data.index(b"\r", place)])
    end = head + 4 + length
    return end if len(data) >= end else 0


async def receive(
    listener: socket.socket, report: str, tls: ssl.SSLContext | None, close_after: bool
) -> None:
    seen: list[tuple[float, bytes]] = []
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    for number, suffix, answer in (
        (signal.SIGUSR1, ".count", lambda: str(len(seen)).encode()),
        (signal.SIGUSR2, ".seen", lambda: msgspec.msgpack.encode(seen)),
    ):
        loop.add_signal_handler(number, _write, report + suffix, answer)
    server = await loop.create_server(
        lambda: ReceiverProtocol(seen, close_after), sock=listener, ssl=tls, backlog=BACKLOG
    )
    _write(report + ".ready", lambda: b"")
    await stop.wait()
    server.close()
    _write(report, lambda: msgspec.msgpack.encode(seen))


def _write(path: str, content: Callable[[], bytes]) -> None:
    """Writes atomically, so that a reader never sees a part."""
    Path(path + ".new").write_bytes(content())
    Path(path + ".new").replace(path)


def main(descriptor: str, report: str, chain: str, close_after: str) -> None:
    tls = None
    if chain:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain)
    listener = socket.socket(fileno=int(descriptor))
    # It makes no reference cycles, so garbage collection would only take time.
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(receive(listener, report, tls, close_after == "close"))


if __name__ == "__main__":
    main(*sys.argv[1:])
