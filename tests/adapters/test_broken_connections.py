"""Receivers that refuse, reset, close or swallow: the outcome is right, and in time."""

import asyncio

import pytest

from cuepost.domain.attempt import Outcome
from tests.adapters.sender import ended_after, loopback_policy, open_sockets, sender
from tests.support.fault_server import (
    Peer,
    Script,
    fault_server,
    full_backlog,
    silence,
    unused_port,
)

SHORT_SECONDS = 0.3
ENDINGS = ("close", "reset")


async def end(peer: Peer, ending: str) -> None:
    if ending == "close":
        await peer.close()
    else:
        peer.reset()


def after(sent: bytes, ending: str) -> Script:
    """Reads the request, says that much, and ends."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(sent)
        if ending == "reset":
            # Let it arrive: a reset overtakes what is still on its way.
            await peer.gone_within(0.05)
        await end(peer, ending)

    return script


async def test_a_refused_connection_is_a_connect_error() -> None:
    with sender() as client:
        url = f"http://receiver.example:{unused_port()}/"
        assert await client.fault(url) is Outcome.CONNECT_ERROR


async def test_an_unreachable_network_is_a_connect_error() -> None:
    with sender(loopback_policy("240.0.0.0/4")) as client:
        client.resolver.answers["receiver.example"] = [["255.255.255.255"]]
        assert await client.fault("http://receiver.example/") is Outcome.CONNECT_ERROR


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_end_right_after_the_accept_is_a_connect_error(ending: str) -> None:
    async def script(peer: Peer) -> None:
        await end(peer, ending)

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.CONNECT_ERROR


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_end_within_the_request_is_a_connect_error(ending: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request_head()
        await end(peer, ending)

    async with fault_server(script) as server:
        with sender() as client:
            exchange = await client.post(
                f"http://receiver.example:{server.port}/", body=b"x" * 5_000_000
            )
    assert exchange.fault is Outcome.CONNECT_ERROR


@pytest.mark.parametrize("ending", ENDINGS)
async def test_an_end_instead_of_an_answer_is_a_connect_error(ending: str) -> None:
    async with fault_server(after(b"", ending)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.CONNECT_ERROR


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    "part",
    [
        b"H",
        b"HTTP/1.1 20",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-len",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
    ],
)
async def test_an_end_within_the_head_is_a_protocol_error(part: bytes, ending: str) -> None:
    async with fault_server(after(part, ending)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.PROTOCOL_ERROR


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize(
    ("head", "body"),
    [
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b"hel"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n", b"hel"),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n3\r\n", b"hel"),
    ],
)
async def test_an_end_within_the_body_does_not_undo_the_status(
    head: bytes, body: bytes, ending: str
) -> None:
    async with fault_server(after(head + body, ending)) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.body, exchange.truncated) == (200, body, True)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.0 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
    ],
)
@pytest.mark.parametrize("ending", ENDINGS)
async def test_a_body_may_end_with_the_connection_but_not_with_a_reset(
    head: bytes, ending: str
) -> None:
    async with fault_server(after(head + b"hello", ending)) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.body) == (200, b"hello")
    assert exchange.truncated == (ending == "reset")


async def test_a_receiver_that_never_answers_is_a_timeout() -> None:
    async with fault_server(silence) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/", SHORT_SECONDS)
        await asyncio.wait_for(server.peers[0].gone.wait(), 5)
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, SHORT_SECONDS)
    assert exchange.timings.connect_ms is not None
    assert exchange.timings.first_byte_ms is None


async def test_packets_that_are_swallowed_are_a_timeout() -> None:
    before = open_sockets()
    with full_backlog() as port, sender() as client:
        exchange = await client.post(f"http://receiver.example:{port}/", SHORT_SECONDS)
        assert exchange.fault is Outcome.TIMEOUT
        assert exchange.timings.connect_ms == pytest.approx(exchange.duration_ms, abs=250)
    assert open_sockets() == before


async def test_a_receiver_that_does_not_read_is_a_timeout() -> None:
    async def script(peer: Peer) -> None:
        peer.transport.pause_reading()
        await finished.wait()

    finished = asyncio.Event()
    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            exchange = await client.post(url, SHORT_SECONDS, body=b"x" * 20_000_000)
        finished.set()
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, SHORT_SECONDS)


@pytest.mark.parametrize("script_name", ["silence", "backlog"])
async def test_cancelling_a_request_closes_its_socket(script_name: str) -> None:
    before = open_sockets()
    async with fault_server(silence) as server:
        with full_backlog() as full, sender() as client:
            listening = open_sockets()
            port = server.port if script_name == "silence" else full
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.post(f"http://receiver.example:{port}/"), 0.1)
            if script_name == "silence":
                await asyncio.wait_for(server.peers[0].gone.wait(), 5)
            assert open_sockets() <= listening
    assert open_sockets() <= before


async def test_a_hundred_hanging_receivers_do_not_hold_up_another() -> None:
    async def script(peer: Peer) -> None:
        request = await peer.request()
        if request.header("host").startswith("quick."):
            peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            async with asyncio.TaskGroup() as group:
                slow = [
                    group.create_task(client.post(f"http://slow{n}.example:{server.port}/", 1.0))
                    for n in range(100)
                ]
                quick = await client.post(f"http://quick.example:{server.port}/")
    assert quick.status == 204
    assert {task.result().fault for task in slow} == {Outcome.TIMEOUT}
