"""Connections are used again while that is right, and never when it is not."""

import asyncio
import ssl
from time import perf_counter
from typing import cast

import anyio.lowlevel
import pytest

from cuepost.adapters import guarded_dialler, guarded_transport, http_connection
from cuepost.adapters.http_connection import ConnectionPool, HttpConnection
from cuepost.domain.attempt import Outcome
from cuepost.ports.transport import Exchange
from tests.adapters.sender import ended_after, open_sockets, sender, settled
from tests.adapters.test_answer_properties import RECEIVER, FakeTransport
from tests.support.certificates import Authority
from tests.support.fault_server import OK, Peer, answering, fault_server

CLOSES_WHILE_RESTING = 200


@pytest.mark.parametrize(
    "answer",
    [
        OK,
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\nt: x\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        # As Apache announces HTTP/2 in ordinary answers
        b"HTTP/1.1 200 OK\r\nupgrade: h2c\r\nconnection: upgrade\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
    ],
)
async def test_a_connection_whose_answer_has_an_end_is_used_again(answer: bytes) -> None:
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            exchanges = [await client.post(url) for _ in range(3)]
    assert len(server.peers) == 1
    assert client.resolver.look_ups == {"receiver.example": 1}
    final_status = int(answer[answer.rindex(b"HTTP/1.") :].split()[1])
    assert [(e.status, e.truncated) for e in exchanges] == [(final_status, False)] * 3


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 500 Oops\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokH",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok and more",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok and more",
    ],
)
async def test_a_connection_that_cannot_be_trusted_is_not_used_again(answer: bytes) -> None:
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            exchanges = [await client.post(url) for _ in range(3)]
    assert [(e.status, e.body, e.truncated) for e in exchanges] == [(200, b"ok", False)] * 3
    assert len(server.peers) == len(server.requests) == 3
    assert client.resolver.look_ups == {"receiver.example": 3}


async def test_bytes_that_come_while_a_connection_rests_end_it() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(OK)
        await resting.wait()
        peer.send(b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n")
        await peer.wait_until_gone()
        resting.clear()

    resting = asyncio.Event()
    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            for _ in range(3):
                assert (await client.post(url)).status == 200
                resting.set()
                await asyncio.wait_for(server.peers[-1].gone.wait(), 5)
    assert len(server.peers) == 3


async def test_a_connection_that_the_receiver_closes_while_it_rests_fails_no_request() -> None:
    """The close crosses with the next request, each time at another moment."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(OK)
        if len(server.requests) % 3 == 0:
            await asyncio.get_running_loop().run_in_executor(None, int)
        if len(server.requests) % 2:
            await peer.close()
        else:
            peer.reset()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            statuses = [(await client.post(url)).status for _ in range(CLOSES_WHILE_RESTING)]
    assert statuses == [200] * CLOSES_WHILE_RESTING


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_a_used_connection_that_ends_before_any_answer_is_replaced_once(ending: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if len(server.peers) == 1:
            peer.send(OK)
            await peer.request()
        if ending == "close":
            await peer.close()
        else:
            peer.reset()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert (await client.post(url)).status == 200
            # The fresh one ends in the same way, and is not replaced again.
            assert await client.fault(url) is Outcome.CONNECT_ERROR
    assert (len(server.peers), len(server.requests)) == (2, 3)
    assert client.resolver.look_ups == {"receiver.example": 2}


async def test_a_used_connection_that_ends_within_an_answer_is_not_replaced() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(OK)
        await peer.request()
        peer.send(b"H")
        await peer.close()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert (await client.post(url)).status == 200
            assert await client.fault(url) is Outcome.PROTOCOL_ERROR
    assert (len(server.peers), len(server.requests)) == (1, 2)


async def test_the_replacement_has_no_more_time_than_the_request_had() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        if len(server.peers) == 1:
            peer.send(OK)
            await peer.request()
            await peer.gone_within(0.2)
            await peer.close()
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert (await client.post(url)).status == 200
            exchange = await client.post(url, timeout_seconds=0.4)
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, 0.4)


async def test_a_used_connection_has_the_time_of_the_new_request_not_of_the_last() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(OK)
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert (await client.post(url, timeout_seconds=15)).status == 200
            exchange = await client.post(url, timeout_seconds=0.3)
    assert exchange.fault is Outcome.TIMEOUT
    assert ended_after(exchange, 0.3)


async def test_a_goodbye_to_the_resting_connection_is_not_the_answer_to_a_request() -> None:
    """Some servers say 408 before they close an idle connection, and it may cross a request."""

    async def script(peer: Peer) -> None:
        await peer.request()
        if len(server.peers) == 2:
            peer.send(OK)
            await peer.wait_until_gone()
        peer.send(OK)
        await peer.request()
        peer.send(b"HTTP/1.1 408 Too slow\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert [(await client.post(url)).status for _ in range(2)] == [200, 200]
    assert len(server.peers) == 2


async def test_receivers_do_not_share_connections(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context("a.example", "b.example", "127.0.0.1")
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            for host in ("a.example", "b.example", "127.0.0.1") * 2:
                assert (await client.post(f"https://{host}:{server.port}/")).status == 200
    assert len(server.peers) == 3


async def test_a_connection_is_used_for_a_minute_from_its_opening(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    passed = [0.0]
    for module in (guarded_dialler, guarded_transport, http_connection):
        monkeypatch.setattr(module, "perf_counter", lambda: perf_counter() + passed[0])
    async with fault_server(answering()) as server:
        with sender() as client:
            counts = []
            for passed[0] in (0.0, 30.0, 59.0, 61.0, 100.0, 122.0):
                assert (await client.post(f"http://receiver.example:{server.port}/")).status == 200
                counts.append(len(server.peers))
    assert counts == [1, 1, 1, 2, 2, 3]


async def test_a_resting_connection_is_closed_at_the_end_of_its_life(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(guarded_dialler, "LONGEST_CONNECTION_LIFE_SECONDS", 0.1)
    async with fault_server(answering()) as server:
        with sender() as client:
            assert (await client.post(f"http://receiver.example:{server.port}/")).status == 200
            await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_no_more_connections_rest_than_the_limit_and_the_idlest_goes_first() -> None:
    before = open_sockets()
    async with fault_server(answering()) as server:
        with sender(most_idle=2) as client:
            for host in ("a.example", "b.example", "a.example", "c.example"):
                await client.post(f"http://{host}:{server.port}/")
            await asyncio.wait_for(server.peers[1].gone.wait(), 5)
            assert [peer.gone.is_set() for peer in server.peers] == [False, True, False]
    await settled(sockets=before)


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_close_leaves_no_socket_open(
    scheme: str, authority: Authority, trusting: ssl.SSLContext
) -> None:
    before = open_sockets()
    context = authority.server_context("receiver.example") if scheme == "https" else None
    async with fault_server(answering(), tls=context) as server:
        listening = open_sockets()
        with sender(tls=trusting) as client:
            url = f"{scheme}://receiver.example:{server.port}/"
            exchanges = await asyncio.gather(*[client.post(url) for _ in range(10)])
            assert {exchange.status for exchange in exchanges} == {200}
            assert open_sockets() == listening + 20
        await settled(sockets=listening)
    await settled(sockets=before)


async def test_a_connection_in_use_at_close_ends_with_its_request() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        asked.set()
        await closed.wait()
        peer.send(OK)
        await peer.wait_until_gone()

    asked, closed = asyncio.Event(), asyncio.Event()
    async with fault_server(script) as server:
        with sender() as client:
            async with asyncio.TaskGroup() as group:
                url = f"http://receiver.example:{server.port}/"
                sending = group.create_task(client.post(url))
                await asyncio.wait_for(asked.wait(), 5)
                client.transport.close()
                closed.set()
            assert sending.result().status == 200
            await asyncio.wait_for(server.peers[0].gone.wait(), 5)


@pytest.mark.parametrize("cancelled_first", [False, True])
async def test_cancelling_an_exchange_that_is_over_does_not_end_the_next_one(
    *, cancelled_first: bool
) -> None:
    loop, buffer, pool = asyncio.get_running_loop(), memoryview(bytearray(OK)), ConnectionPool(1)
    connection = HttpConnection(loop, RECEIVER, buffer, perf_counter() + 60, pool)
    connection.connection_made(cast(asyncio.Transport, FakeTransport()))
    ended: list[Exchange | None] = []
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(connection.exchange(b"first", perf_counter() + 5))
        await anyio.lowlevel.checkpoint()
        if cancelled_first:
            sending.cancel()
        connection.buffer_updated(len(OK))
        assert pool.take(RECEIVER) is connection
        connection.begin(b"second", perf_counter() + 5, ended.append)
        sending.cancel()
    connection.buffer_updated(len(OK))
    assert sending.cancelled()
    assert [each and each.status for each in ended] == [200]
    assert pool.take(RECEIVER) is connection
