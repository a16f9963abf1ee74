"""A receiver for long runs: fails sometimes, and writes every request to its own file.

It answers 503 to the first attempt of every 16th event, to the first two of every 256th, and always
to every 4,096th. The requests are in an SQLite file, because they may not fit into memory.
"""

import asyncio
import signal
import socket
import sqlite3
import sys
import time
from collections import Counter
from pathlib import Path
from typing import cast

import uvloop

BACKLOG = 4_096
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
TABLE = "CREATE TABLE received (event TEXT, at REAL, path TEXT, head BLOB, body BLOB, status INT)"
REFUSED = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 5\r\n\r\nlater"
ROWS_AT_ONCE = 1_000
ENDURED = {"0": 1, "00": 2, "000": 1_000}


class RequestLog:
    def __init__(self, path: str) -> None:
        self._file = sqlite3.connect(path, isolation_level=None)
        self._file.execute("PRAGMA journal_mode=OFF")
        self._file.execute("PRAGMA synchronous=OFF")
        self._file.execute(TABLE)
        self._rows: list[tuple[str, float, str, bytes, bytes, int]] = []
        self._failed: Counter[str] = Counter()

    def judge(self, event: str) -> int:
        """The status to answer this attempt with."""
        most = max((count for end, count in ENDURED.items() if event.endswith(end)), default=0)
        if self._failed[event] < most:
            self._failed[event] += 1
            return 503
        self._failed.pop(event, None)
        return 200

    def note(self, event: str, path: str, head: bytes, body: bytes, status: int) -> None:
        self._rows.append((event, time.time(), path, head, body, status))
        if len(self._rows) >= ROWS_AT_ONCE:
            self.write()

    def write(self) -> None:
        self._file.execute("BEGIN")
        self._file.executemany("INSERT INTO received VALUES (?, ?, ?, ?, ?, ?)", self._rows)
        self._file.execute("COMMIT")
        self._rows.clear()

    def close(self) -> None:
        self.write()
        self._file.execute("CREATE INDEX by_event ON received (event)")
        self._file.close()


class FlakyProtocol(asyncio.Protocol):
    """Parses only the necessary parts of HTTP."""

    def __init__(self, requests: RequestLog) -> None:
        self._requests = requests
        self._buffer = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        while (place := self._buffer.find(b"\r\n\r\n")) >= 0:
            head, rest = self._buffer[:place], self._buffer[place + 4 :]
            length = int(_header(head, b"content-length: "))
            if len(rest) < length:
                return
            self._buffer = rest[length:]
            self._answer(head, rest[:length])

    def _answer(self, head: bytes, body: bytes) -> None:
        assert self._transport is not None
        event = _header(head, b"webhook-id: ").decode()
        status = self._requests.judge(event)
        path = head[: head.index(b" HTTP/1.1")].decode().removeprefix("POST ")
        self._requests.note(event, path, head, body, status)
        self._transport.write(ANSWER if status == 200 else REFUSED)


def _header(head: bytes, name: bytes) -> bytes:
    start = head.index(name) + len(name)
    end = head.find(b"\r", start)
    return head[start:] if end < 0 else head[start:end]


async def receive(listener: socket.socket, requests: RequestLog) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    server = await loop.create_server(
        lambda: FlakyProtocol(requests), sock=listener, backlog=BACKLOG
    )
    await stop.wait()
    server.close()
    requests.close()


def main(descriptor: str, report: str) -> None:
    Path(report).unlink(missing_ok=True)
    listener = socket.socket(fileno=int(descriptor))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(receive(listener, RequestLog(report)))


if __name__ == "__main__":
    main(*sys.argv[1:])
