"""Whatever bytes come, in whatever pieces: an exchange ends, in one of the few ways it may."""

import asyncio
import re
from collections.abc import Callable
from itertools import pairwise
from time import perf_counter
from typing import cast

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cuepost.adapters.answer_reader import BODY_KEPT, MOST_HEADERS
from cuepost.adapters.http_connection import ConnectionPool, HttpConnection
from cuepost.domain.attempt import Outcome

RECEIVER = ("http", "receiver.example", 80)
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")

STATUS_LINES = st.sampled_from(
    [
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 204 No Content\r\n",
        b"HTTP/1.1 100 Continue\r\n",
        b"HTTP/1.1 101 Switching\r\n",
        b"HTTP/1.1 304 Not Modified\r\n",
        b"HTTP/1.0 500 Oops\r\n",
        b"HTTP/1.1 999\r\n",
        b"RTSP/1.0 200 OK\r\n",
        b"HTTP/1.1 2",
        b"\r\n",
    ]
)
HEADER_LINES = st.sampled_from(
    [
        b"content-length: 5\r\n",
        b"content-length: 0\r\n",
        b"content-length: 99999999999999999999\r\n",
        b"transfer-encoding: chunked\r\n",
        b"transfer-encoding: gzip\r\n",
        b"connection: close\r\n",
        b"connection: keep-alive\r\n",
        b"connection: upgrade\r\nupgrade: h2c\r\n",
        b"X-A: \xe9\r\n",
        b"x-empty:\r\n",
        b" folded\r\n",
        b"x" * 300 + b": y\r\n",
        b"a: b\r\n" * MOST_HEADERS,
    ]
)
BODIES = st.sampled_from(
    [
        b"hello",
        b"5\r\nhello\r\n0\r\n\r\n",
        b"5;a=b\r\nhello\r\n0\r\nt: u\r\n\r\n",
        b"zz\r\n",
        b"ffffffff\r\n",
        b"y" * (BODY_KEPT + 1),
        b"HTTP/1.1 200 OK\r\n\r\n",
    ]
)
ANSWERS = st.lists(
    STATUS_LINES | HEADER_LINES | BODIES | st.just(b"\r\n") | st.binary(max_size=8), max_size=12
).map(b"".join)
CUTS = st.lists(st.integers(0, 400), max_size=20)


class FakeTransport:
    """Takes requests; what arrives is decided by the test."""

    def __init__(self) -> None:
        self.aborted = False

    def write(self, data: bytes) -> None:
        assert data

    def abort(self) -> None:
        self.aborted = True

    def get_write_buffer_size(self) -> int:
        return 0


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    edges = [0, *sorted({cut for cut in cuts if 0 < cut < len(data)}), len(data)]
    return [data[a:b] for a, b in pairwise(edges) if a < b]


def exchanged(data: bytes, cuts: list[int], error: Exception | None) -> tuple[object, ...]:
    """What an exchange comes to when these bytes arrive, and then the connection ends."""

    async def exchange() -> tuple[object, ...]:
        buffer = memoryview(bytearray(BODY_KEPT))
        transport = FakeTransport()
        loop, pool = asyncio.get_running_loop(), ConnectionPool(1)
        connection = HttpConnection(loop, RECEIVER, buffer, perf_counter() + 60, pool)
        connection.connection_made(cast(asyncio.Transport, transport))
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            sending = group.create_task(outcome_of(connection))
            loop.call_soon(arrive, connection, transport, buffer, pieces(data, cuts), error)
        assert not pool._idle
        assert not connection.usable
        return sending.result()

    return asyncio.run(exchange())


def arrive(
    connection: HttpConnection,
    transport: FakeTransport,
    buffer: memoryview,
    parts: list[bytes],
    error: Exception | None,
) -> None:
    for part in parts:
        for start in range(0, len(part), len(buffer)):
            if transport.aborted:
                break
            read = part[start : start + len(buffer)]
            connection.get_buffer(-1)[: len(read)] = read
            connection.buffer_updated(len(read))
    if error is None and not transport.aborted:
        assert not connection.eof_received()
    connection.connection_lost(None if transport.aborted else error)


async def outcome_of(connection: HttpConnection) -> tuple[object, ...]:
    answer = await connection.exchange(b"POST / HTTP/1.1\r\n\r\n", perf_counter() + 4)
    assert answer is not None
    if answer.fault is not None:
        assert answer.fault in (Outcome.PROTOCOL_ERROR, Outcome.CONNECT_ERROR)
        assert answer.status is None
        return (answer.fault,)
    assert answer.status is not None
    assert 200 <= answer.status <= 999
    assert len(answer.body) <= BODY_KEPT
    assert len(answer.headers) <= MOST_HEADERS
    for name, value in answer.headers:
        assert TOKEN.fullmatch(name)
        assert VALUE.fullmatch(value)
    return answer.status, answer.headers, answer.body, answer.truncated


def in_pieces(test: Callable[..., None]) -> Callable[..., None]:
    reset = st.sampled_from([None, ConnectionResetError()])
    return settings(max_examples=300)(
        given(data=ANSWERS | st.binary(max_size=60), cuts=CUTS, error=reset)(test)
    )


@in_pieces
@example(data=b"", cuts=[], error=None)
@example(data=b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 100_000, cuts=[], error=None)
def test_any_bytes_come_to_one_of_the_known_ends_however_they_are_cut(
    data: bytes, cuts: list[int], error: Exception | None
) -> None:
    whole = exchanged(data, [], error)
    if not data:
        assert whole == (Outcome.CONNECT_ERROR,)
    assert exchanged(data, cuts, error) == whole


@given(
    status=st.integers(200, 599).filter(lambda status: status not in (204, 304)),
    body=st.binary(max_size=2 * BODY_KEPT),
    sizes=st.lists(st.integers(1, 5000), max_size=10),
    cuts=CUTS,
    chunked=st.booleans(),
)
def test_a_good_answer_is_read_as_it_was_written(
    status: int, body: bytes, sizes: list[int], cuts: list[int], *, chunked: bool
) -> None:
    if chunked:
        framing, sent = b"transfer-encoding: chunked", b""
        rest = body
        for size in [*sizes, max(1, len(body))]:
            part, rest = rest[:size], rest[size:]
            if part:
                sent += b"%x\r\n%b\r\n" % (len(part), part)
        sent += b"0\r\n\r\n"
    else:
        framing, sent = b"content-length: %d" % len(body), body
    data = b"HTTP/1.1 %d Some words\r\n%b\r\n\r\n%b" % (status, framing, sent)
    name, _, value = framing.decode().partition(": ")
    assert exchanged(data, cuts, None) == (
        status,
        ((name, value),),
        body[:BODY_KEPT],
        len(body) > BODY_KEPT,
    )
