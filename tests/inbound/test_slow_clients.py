"""Slow, silent and vanished clients are disconnected in time; those that make progress are not."""

import asyncio
from contextlib import suppress
from dataclasses import replace

import pytest

from cuepost.adapters.system_clock import SystemClock
from cuepost.bootstrap.guarded_protocol import MOST_UNREAD
from cuepost.bootstrap.inbound_guard import InboundLimits, Refusal
from tests.inbound.guarded_server import Line, guarded_server, status_in, until

QUICK = InboundLimits(head_seconds=1.0, body_seconds=1.0, answer_seconds=1.0, idle_seconds=1.0)
HALF_HEAD = b"GET / HTTP/1.1\r\nhost: a\r\nx-half: "
PATIENCE_SECONDS = 10.0


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (b"", 0, Refusal.HEAD_TIMEOUT),
        (b"\r\n", 408, Refusal.HEAD_TIMEOUT),
        (b"GE", 408, Refusal.HEAD_TIMEOUT),
        (HALF_HEAD, 408, Refusal.HEAD_TIMEOUT),
        (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\n", 408, Refusal.BODY_TIMEOUT),
        (b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nabc", 408, Refusal.BODY_TIMEOUT),
        (b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n5\r\n", 408, Refusal.BODY_TIMEOUT),
    ],
    ids=[
        "nothing",
        "an empty line",
        "a method",
        "half a head",
        "no body",
        "half a body",
        "a chunk",
    ],
)
async def test_a_request_that_does_not_go_on_is_ended(
    said: bytes, status: int, reason: Refusal
) -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(said)
        assert status_in(await line.rest()) == status
        assert server.refusals == {reason: 1}
        line.close()


@pytest.mark.parametrize(
    "beginning",
    [HALF_HEAD, b"POST / HTTP/1.1\r\ncontent-length: 100000\r\n\r\n"],
    ids=["head", "body"],
)
async def test_one_byte_at_a_time_is_no_progress(beginning: bytes) -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(beginning)
        await drip(line)
        assert sum(server.refusals.values()) == 1
        line.close()


async def pour(line: Line, size: int) -> None:
    for _ in range(size // 65_536):
        await line.say(bytes(65_536))


async def drip(line: Line) -> None:
    """Until the other side has had enough."""
    clock = SystemClock()
    with suppress(ConnectionError):
        while True:
            await line.say(b"x")
            await clock.wait(0.05)


async def test_a_body_that_grows_may_take_longer_than_the_limit() -> None:
    # Many times the distance of two pieces, and still less than all of them take.
    limits = replace(QUICK, body_seconds=2.0)
    async with guarded_server(limits) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(b"POST / HTTP/1.1\r\ncontent-length: 12000\r\n\r\n")
        for _ in range(12):
            await line.say(b"x" * 1_000)
            await SystemClock().wait(0.2)
        assert await line.status() == 200
        assert server.seen == [("/", 12_000, "127.0.0.1")]
        assert server.refusals == {}
        line.close()


async def test_half_a_head_after_an_answer_is_ended_as_well() -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(b"GET / HTTP/1.1\r\n\r\n" + HALF_HEAD)
        assert await line.status() == 200
        assert status_in(await line.rest()) == 408
        assert server.refusals == {Refusal.HEAD_TIMEOUT: 1}
        line.close()


async def test_half_a_head_does_not_end_the_request_before_it() -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(b"GET /held HTTP/1.1\r\n\r\n" + HALF_HEAD)
        await SystemClock().wait(2)
        server.release.set()
        assert await line.status() == 200
        line.close()


async def test_an_idle_connection_is_closed_and_that_is_no_refusal() -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(b"GET / HTTP/1.1\r\n\r\n")
        assert await line.status() == 200
        assert await line.rest() == b""
        assert server.refusals == {}
        line.close()


async def test_a_body_after_its_answer_is_read_to_a_limit() -> None:
    request = b"POST /early HTTP/1.1\r\ncontent-length: %d\r\n\r\n"
    async with guarded_server() as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(request % MOST_UNREAD)
        assert await line.status() == 200
        await line.say(bytes(MOST_UNREAD))
        await line.say(b"GET /next HTTP/1.1\r\n\r\n")
        assert await line.status() == 200
        assert server.refusals == {}

        await line.say(request % (3 * MOST_UNREAD))
        assert await line.status() == 200
        with pytest.raises(ConnectionError):
            await pour(line, 20 * MOST_UNREAD)
        assert server.refusals == {Refusal.UNREAD_BODY: 1}
        line.close()


async def test_an_answer_that_is_not_read_is_given_up() -> None:
    async with guarded_server(QUICK) as server, asyncio.timeout(PATIENCE_SECONDS):
        line = await Line.open(server.port)
        await line.say(b"GET /large HTTP/1.1\r\n\r\n")
        await until(lambda: bool(server.refusals))
        assert server.refusals == {Refusal.ANSWER_TIMEOUT: 1}
        line.close()


async def test_clients_that_leave_early_leave_nothing_behind() -> None:
    async with guarded_server() as server, asyncio.timeout(PATIENCE_SECONDS):
        for said in (b"", b"GET", HALF_HEAD, b"POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nab"):
            line = await Line.open(server.port)
            await line.say(said)
            line.close()
        [guard] = server.metrics.guards
        await until(lambda: not guard.open_connections)
        assert server.refusals == {}
