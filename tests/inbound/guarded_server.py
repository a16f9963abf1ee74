"""A small application behind the guard, on a real socket of this process."""

import asyncio
import socket
from asyncio import Protocol
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import cast

import uvicorn
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send

from cuepost.adapters.system_clock import SystemClock
from cuepost.bootstrap.guarded_protocol import guarded_connections
from cuepost.bootstrap.inbound_guard import InboundGuard, InboundLimits, InboundMetrics, Refusal
from cuepost.bootstrap.web_server import GracefulServer

PATIENCE_SECONDS = 20.0
LARGE_ANSWER = 8 * 1_048_576


@dataclass(slots=True)
class GuardedServer:
    """`/early` answers before it has read the body, `/held` once `release` is set, `/large` with
    more than any socket holds; everything else reads the body and tells what it has seen.
    """

    port: int
    metrics: InboundMetrics
    release: asyncio.Event = field(default_factory=asyncio.Event)
    held: int = 0
    seen: list[tuple[str, int, str]] = field(default_factory=list)

    @property
    def refusals(self) -> Mapping[Refusal, int]:
        return {
            Refusal(reason): count for reason, count in self.metrics.refused.of.items() if count
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, content = scope["path"], b"ok"
        if path == "/large":
            content = bytes(LARGE_ANSWER)
        elif path == "/held":
            self.held += 1
            await self.release.wait()
        elif path != "/early":
            size, more = 0, True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    return
                size, more = size + len(message["body"]), message["more_body"]
            self.seen.append((path, size, scope["client"][0]))
        headers = [(b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})


@asynccontextmanager
async def guarded_server(limits: InboundLimits | None = None) -> AsyncIterator[GuardedServer]:
    with socket.create_server(("127.0.0.1", 0), backlog=1_024) as listener:
        metrics = InboundMetrics(CollectorRegistry())
        app = GuardedServer(listener.getsockname()[1], metrics)
        guard = InboundGuard(limits or InboundLimits(), metrics)
        server = GracefulServer(
            uvicorn.Config(
                app,
                http=cast("type[Protocol]", guarded_connections(guard)),
                ws="none",
                log_config=None,
                lifespan="off",
                timeout_graceful_shutdown=1,
            )
        )
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listener]))
            try:
                yield app
            finally:
                app.release.set()
                server.stop()
                await serving


class Line:
    """A client's end of a connection, without any behaviours of its own.

    It is a bare socket: what the server wrote can be read also after it has reset the connection.
    """

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()
        self._got = b""

    @classmethod
    async def open(cls, port: int, address: str = "127.0.0.1") -> "Line":
        sock = socket.socket()
        sock.setblocking(False)
        sock.bind((address, 0))
        line = cls(sock)
        await line._loop.sock_connect(sock, ("127.0.0.1", port))
        return line

    async def say(self, data: bytes) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            await self._loop.sock_sendall(self.socket, data)

    async def more(self) -> bytes:
        """What comes next; nothing once the connection has ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                return await self._loop.sock_recv(self.socket, 65_536)
            except ConnectionError:
                return b""

    async def rest(self) -> bytes:
        """All that comes until the server closes the connection."""
        got, self._got = self._got, b""
        while piece := await self.more():
            got += piece
        return got

    async def status(self) -> int:
        """Of one answer, whose body is read as well; 0 if there is none."""
        while b"\r\n\r\n" not in self._got:
            piece = await self.more()
            if not piece:
                return 0
            self._got += piece
        head, _, got = self._got.partition(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        while len(got) < length:
            got += await self.more()
        self._got = got[length:]
        return status_in(head)

    def close(self) -> None:
        self.socket.close()


def status_in(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


async def until(is_so: Callable[[], bool]) -> None:
    """Look again and again, for a while."""
    clock = SystemClock()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not is_so():
            await clock.wait(0.005)


async def asked(port: int, request: bytes, address: str = "127.0.0.1") -> int:
    """The status of the answer to these bytes; 0 if there is none."""
    line = await Line.open(port, address)
    try:
        await line.say(request)
        return status_in(await line.rest())
    finally:
        line.close()
