"""A receiver in a process of its own: notes every request and answers as its path says.

`/ok…` answers 200 at once, `/slow…` after 50 ms, `/hang…` never, `/drip…` with a byte a second. It
parses no more of HTTP than it needs, so that it is not what a benchmark measures. When it is told
to end it writes down what it saw, as one msgpack array of (arrival, raw request).
"""

import asyncio
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
DRIPPED = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-slow: " + b"a" * 600
BACKLOG = 4_096
SLOW_SECONDS = 0.05


class Conversation(asyncio.Protocol):
    def __init__(self, note: Callable[[float, bytes], None], close_after: bool) -> None:
        self._note = note
        self._close_after = close_after
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are none by their type.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        while (end := self._end_of_request()) is not None:
            request, self._buffer = self._buffer[:end], self._buffer[end:]
            self._note(time.time(), request)
            self._answer(request)

    def _end_of_request(self) -> int | None:
        head = self._buffer.find(b"\r\n\r\n")
        if head < 0:
            return None
        place = self._buffer.find(b"content-length: ") + 16
        length = int(self._buffer[place : self._buffer.find(b"\r", place)])
        end = head + 4 + length
        return end if len(self._buffer) >= end else None

    def _answer(self, request: bytes) -> None:
        assert self._transport is not None
        if request.startswith(b"POST /ok"):
            self._transport.write(ANSWER)
            if self._close_after:
                self._transport.close()
        elif request.startswith(b"POST /slow"):
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._transport.write, ANSWER)
        elif request.startswith(b"POST /drip"):
            self._drip(0)

    def _drip(self, place: int) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(DRIPPED[place : place + 1])
            asyncio.get_running_loop().call_later(1, self._drip, place + 1)


async def receive(
    listener: socket.socket, report: str, tls: ssl.SSLContext | None, close_after: bool
) -> None:
    seen: list[tuple[float, bytes]] = []
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(
        lambda: Conversation(lambda at, request: seen.append((at, request)), close_after),
        sock=listener,
        ssl=tls,
        backlog=BACKLOG,
    )
    for number, suffix, answer in (
        (signal.SIGUSR1, ".count", lambda: str(len(seen)).encode()),
        (signal.SIGUSR2, ".seen", lambda: msgspec.msgpack.encode(seen)),
    ):
        loop.add_signal_handler(number, _write, report + suffix, answer)
    await stop.wait()
    server.close()
    _write(report, lambda: msgspec.msgpack.encode(seen))


def _write(path: str, content: Callable[[], bytes]) -> None:
    """In one go, so that nobody reads half of it."""
    Path(path + ".new").write_bytes(content())
    Path(path + ".new").replace(path)


def main(descriptor: str, report: str, chain: str, close_after: str) -> None:
    tls = None
    if chain:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(chain)
    listener = socket.socket(fileno=int(descriptor))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(receive(listener, report, tls, close_after == "close"))


if __name__ == "__main__":
    main(*sys.argv[1:])
