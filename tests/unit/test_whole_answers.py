"""An answer of one piece is one write; streams and broken answers are written as uvicorn does."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest
import uvicorn
from prometheus_client import CollectorRegistry
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from cuepost.bootstrap.guarded_protocol import READ_BYTES, GuardedProtocol
from cuepost.bootstrap.inbound_guard import InboundGuard, InboundLimits, InboundMetrics

Messages = list[dict[str, Any]]
DATE = (b"date", b"Fri, 02 Jan 2026 03:04:05 GMT")
REQUEST = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n"
LENGTH = (b"content-length", b"4")
START: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": [LENGTH]}
BODY: dict[str, Any] = {"type": "http.response.body", "body": b"body"}
PATIENCE_SECONDS = 10


class Wire:
    """A transport that remembers what was written, and when it was closed."""

    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.closed = False

    def write(self, data: bytes) -> None:
        if data and not self.closed:
            self.writes.append(data)

    def close(self) -> None:
        self.closed = True

    def is_closing(self) -> bool:
        return self.closed

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def resume_reading(self) -> None: ...

    def pause_reading(self) -> None: ...


def started(**changed: Any) -> dict[str, Any]:
    return START | changed


def piece(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": body, "more_body": more}


class Guarded(GuardedProtocol):
    """The protocol of the service, without its factory."""

    def __init__(self, **uvicorns: Any) -> None:
        guard = InboundGuard(InboundLimits(), InboundMetrics(CollectorRegistry()))
        super().__init__(guard, bytearray(READ_BYTES), **uvicorns)

    def data_received(self, data: bytes) -> None:
        self.get_buffer(-1)[: len(data)] = data
        self.buffer_updated(len(data))


async def answered(
    app: Callable[[Scope, Receive, Send], Awaitable[None]],
    request: bytes,
    protocol: type[HttpToolsProtocol],
) -> Wire:
    """What is on the wire once every task of the server has ended."""
    config = uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off")
    state = ServerState()
    state.default_headers = [DATE]
    config.load()
    made, wire = protocol(config=config, server_state=state, app_state={}), Wire()
    made.connection_made(wire)  # type: ignore[arg-type]  # enough of a transport
    made.data_received(request)
    with anyio.fail_after(PATIENCE_SECONDS):
        while state.tasks:
            await asyncio.wait(state.tasks)
    closed = wire.closed
    made.connection_lost(None)
    wire.closed = closed
    return wire


def sending(messages: Messages, error: Exception | None = None) -> Any:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        for message in messages:
            await send(message)
        if error is not None:
            raise error

    return app


async def test_an_answer_of_one_piece_is_one_write() -> None:
    wire = await answered(sending([START, BODY]), REQUEST, Guarded)
    assert wire.writes == [
        b"HTTP/1.1 200 OK\r\ndate: Fri, 02 Jan 2026 03:04:05 GMT\r\ncontent-length: 4\r\n\r\nbody"
    ]
    assert not wire.closed


@pytest.mark.parametrize(
    "request_head",
    [
        REQUEST,
        b"HEAD / HTTP/1.1\r\nhost: a\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
        b"POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n",
        REQUEST + REQUEST + REQUEST,
    ],
    ids=["get", "head", "close", "1.0", "expect", "pipelined"],
)
@pytest.mark.parametrize(
    "messages",
    [
        [START, BODY],
        [started(status=404), BODY],
        [started(headers=[LENGTH, (b"connection", b"close")]), BODY],
        [started(headers=[]), BODY],
        [started(headers=[]), piece(b"bo"), piece(b"dy", more=False)],
        [START, piece(b"bo"), piece(b"dy", more=False)],
        [started(status=204, headers=[]), piece(b"", more=False)],
        [started(headers=[(b"content-length", b"0")]), {"type": "http.response.body"}],
        [started(headers=[(b"transfer-encoding", b"chunked"), LENGTH]), BODY],
        [START, BODY, BODY],
        [START, piece(b"too long", more=False)],
        [START, piece(b"x", more=False)],
        [started(headers=[LENGTH, (b"x-bad", b"a\r\nb: c")]), BODY],
        [started(headers=[LENGTH, (b"x-bad", b"a\x00")]), BODY],
        [BODY],
        [],
    ],
    ids=str,
)
async def test_the_bytes_of_every_answer_are_those_of_uvicorn(
    messages: Messages, request_head: bytes
) -> None:
    expected = await answered(sending(messages), request_head, HttpToolsProtocol)
    found = await answered(sending(messages), request_head, Guarded)
    assert b"".join(found.writes) == b"".join(expected.writes)
    assert found.closed == expected.closed


async def test_the_head_of_a_stream_does_not_wait() -> None:
    seen: list[list[bytes]] = []
    wire: list[Wire] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(started(headers=[]))
        seen.append(list(wire[0].writes))
        await send(piece(b"", more=False))

    class Watched(Guarded):
        def connection_made(self, transport: Any) -> None:
            wire.append(transport)
            super().connection_made(transport)

    await answered(app, REQUEST, Watched)
    assert [len(writes) for writes in seen] == [1]


async def test_an_error_before_the_body_is_answered_with_500() -> None:
    wire = await answered(sending([START], ValueError("broken")), REQUEST, Guarded)
    assert b"".join(wire.writes).startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
    assert wire.closed


async def test_nothing_is_written_to_a_client_that_has_gone() -> None:
    made: list[Guarded] = []

    class Kept(Guarded):
        def connection_made(self, transport: Any) -> None:
            made.append(self)
            super().connection_made(transport)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await send(START)
        made[0].connection_lost(None)
        await send(BODY)

    assert (await answered(app, REQUEST, Kept)).writes == []
