"""Answers that are endless, enormous or wrong cost neither time nor memory beyond the bounds."""

import tracemalloc
import zlib
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cuepost.adapters.answer_reader import BODY_KEPT, MOST_HEADERS, MOST_INTERIM_ANSWERS
from cuepost.domain.attempt import Outcome
from tests.adapters.sender import ended_after, sender
from tests.support.fault_server import OK, Peer, answering, fault_server

SHORT_SECONDS = 0.4
HEAD = b"HTTP/1.1 200 OK\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n"
MEMORY_ALLOWED = 1_000_000
# What fits into the buffers of two sockets, and what a client reads before it sees enough.
MOST_ON_ITS_WAY = 16_000_000


@contextmanager
def memory_flat() -> Iterator[None]:
    tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak - before < MEMORY_ALLOWED


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"content-length: 10000000000\r\n\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\nfffffff\r\n",
        HEAD + b"\r\n",
    ],
)
async def test_an_endless_body_is_cut_at_sixteen_kibibytes(head: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(head)
        await peer.send_endlessly(filler)

    filler = b"x" * 65_536
    async with fault_server(script) as server:
        with sender() as client:
            # The first request pays for what is loaded once.
            for _ in range(2):
                with memory_flat():
                    exchange = await client.post(f"http://receiver.example:{server.port}/")
                assert exchange.status == 200
                assert exchange.body == b"x" * BODY_KEPT
                assert exchange.truncated
                assert exchange.duration_ms < 1900
    assert server.bytes_sent < MOST_ON_ITS_WAY


@pytest.mark.parametrize(
    ("extra", "truncated"), [(-1, False), (0, False), (1, True)], ids=["less", "just", "more"]
)
async def test_a_body_is_kept_whole_up_to_the_bound(extra: int, *, truncated: bool) -> None:
    body = bytes(65 + n % 26 for n in range(BODY_KEPT + extra))
    answer = HEAD + f"content-length: {len(body)}\r\n\r\n".encode() + body
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            exchanges = [await client.post(url) for _ in range(2)]
    for exchange in exchanges:
        assert (exchange.body, exchange.truncated) == (body[:BODY_KEPT], truncated)
    assert len(server.peers) == (2 if truncated else 1)


async def test_a_compressed_body_is_neither_asked_for_nor_opened() -> None:
    bomb = zlib.compress(bytes(30_000_000), wbits=31)
    answer = HEAD + f"content-encoding: gzip\r\ncontent-length: {len(bomb)}\r\n\r\n".encode()
    async with fault_server(answering(answer + bomb)) as server:
        with sender() as client, memory_flat():
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.body) == (200, bomb[:BODY_KEPT])
    assert exchange.truncated


@pytest.mark.parametrize(
    "endless",
    [b"x-a: b\r\n", b"a:\r\n", b"x" * 1000, b"x-a: " + b"y" * 1000],
    ids=["headers", "tiny headers", "name", "name and value"],
)
async def test_endless_headers_are_a_protocol_error(endless: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(HEAD + endless)
        await peer.send_endlessly(endless * (65_536 // len(endless)))

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            for _ in range(2):
                with memory_flat():
                    assert await client.fault(url) is Outcome.PROTOCOL_ERROR
    assert server.bytes_sent < MOST_ON_ITS_WAY


async def test_a_hundred_thousand_headers_are_a_protocol_error() -> None:
    answer = HEAD + b"".join(b"x-%d: y\r\n" % n for n in range(100_000)) + b"\r\n"
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            with memory_flat():
                assert await client.fault(url) is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("size", [100_000, 10_000_000])
async def test_one_giant_header_is_a_protocol_error(size: int) -> None:
    answer = HEAD + b"x-giant: " + b"y" * size + b"\r\n\r\n"
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            with memory_flat():
                assert await client.fault(url) is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("surplus", [0, 1])
async def test_headers_are_counted(surplus: int) -> None:
    count = MOST_HEADERS - 1 + surplus
    lines = b"".join(b"X-%d: y\r\n" % n for n in range(count))
    async with fault_server(answering(HEAD + lines + b"content-length: 0\r\n\r\n")) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    if surplus:
        assert exchange.fault is Outcome.PROTOCOL_ERROR
    else:
        assert exchange.headers[:2] == (("x-0", "y"), ("x-1", "y"))
        assert len(exchange.headers) == MOST_HEADERS


@pytest.mark.parametrize("count", [1, MOST_INTERIM_ANSWERS, MOST_INTERIM_ANSWERS + 1])
async def test_interim_answers_are_passed_over_but_not_without_end(count: int) -> None:
    async with fault_server(answering(INTERIM * count + OK)) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    if count > MOST_INTERIM_ANSWERS:
        assert exchange.fault is Outcome.PROTOCOL_ERROR
    else:
        assert (exchange.status, exchange.body) == (200, b"ok")
        assert exchange.headers == (("content-length", "2"),)


async def test_endless_interim_answers_are_a_protocol_error() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send_endlessly(INTERIM)

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize(
    "dripped",
    [
        HEAD + b"x-a: b\r\n" * 1000,
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"\r\n",
    ],
    ids=["headers", "interim answers", "empty lines"],
)
async def test_a_dripped_head_is_a_timeout_at_the_deadline(dripped: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.drip(dripped, 0.02)

    async with fault_server(script) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/", SHORT_SECONDS)
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, SHORT_SECONDS)


@pytest.mark.parametrize(
    "head",
    [
        HEAD + b"content-length: 1000\r\n\r\n",
        HEAD + b"\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n3e8\r\n",
        HEAD + b"transfer-encoding: chunked\r\n\r\n1;ext=",
        HEAD + b"transfer-encoding: chunked\r\n\r\n0\r\ntrailer: ",
    ],
    ids=["length", "until close", "chunked", "chunk extension", "trailer"],
)
async def test_a_dripped_body_does_not_undo_the_status_and_ends_at_the_deadline(
    head: bytes,
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(head)
        await peer.drip(b"x", 0.02)

    async with fault_server(script) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/", SHORT_SECONDS)
    assert (exchange.status, exchange.fault, exchange.truncated) == (200, None, True)
    assert exchange.body == b"x" * len(exchange.body)
    assert ended_after(exchange, SHORT_SECONDS)


async def test_a_body_is_waited_for_no_longer_than_two_seconds() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(HEAD + b"content-length: 1000\r\n\r\nhello")
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.body, exchange.truncated) == (200, b"hello", True)
    assert ended_after(exchange, 2.0)


@pytest.mark.parametrize(
    "endless", [b"1;" + b"x" * 1000, b"0\r\n" + b"x-a: b\r\n" * 1000, b"1\r\nx\r\n" * 1000]
)
async def test_endless_framing_of_a_body_is_cut(endless: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(HEAD + b"transfer-encoding: chunked\r\n\r\n" + endless)
        await peer.send_endlessly(endless[3:])

    async with fault_server(script) as server:
        with sender() as client, memory_flat():
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.truncated) == (200, True)
    assert exchange.headers == (("transfer-encoding", "chunked"),)
    assert exchange.duration_ms < 1900
