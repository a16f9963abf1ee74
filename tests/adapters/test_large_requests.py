"""Requests that do not leave at once: a connection serves again only when all of it has left."""

import asyncio
import ssl
from errno import ENOTTY

import anyio.lowlevel
import pytest

from cuepost.adapters import http_connection
from tests.adapters.sender import sender
from tests.support.certificates import Authority
from tests.support.fault_server import OK, Peer, answering, fault_server


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_an_answer_before_the_request_was_read_counts_and_ends_the_connection(
    scheme: str, authority: Authority, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request_head()
        peer.transport.pause_reading()
        peer.send(b"HTTP/1.1 413 Too large\r\ncontent-length: 0\r\n\r\n")
        await finished.wait()

    finished = asyncio.Event()
    context = authority.server_context("receiver.example") if scheme == "https" else None
    async with fault_server(script, tls=context) as server:
        with sender(tls=trusting) as client:
            url = f"{scheme}://receiver.example:{server.port}/"
            exchanges = [await client.post(url, 5.0, body=bytes(20_000_000)) for _ in range(2)]
        finished.set()
    assert [exchange.status for exchange in exchanges] == [413, 413]
    assert len(server.peers) == 2


async def test_an_answer_to_a_request_that_is_still_in_the_kernel_ends_the_connection() -> None:
    """The loop has given all of it away, and yet most of it has never left."""

    async def script(peer: Peer) -> None:
        await peer.request()
        if len(server.peers) == 1:
            peer.transport.pause_reading()
        peer.send(OK)
        if len(server.peers) == 1:
            await written.wait()
            peer.send(b"HTTP/1.1 413 Too large\r\ncontent-length: 0\r\n\r\n")
            await finished.wait()
        await peer.wait_until_gone()

    written, finished = asyncio.Event(), asyncio.Event()
    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            statuses = [(await client.post(url)).status]
            async with asyncio.TaskGroup() as group:
                large = group.create_task(client.post(url, 5.0, body=bytes(2_000_000)))
                await anyio.lowlevel.checkpoint()
                written.set()
            statuses += [large.result().status, (await client.post(url, 5.0)).status]
        finished.set()
    assert statuses == [200, 413, 200]
    assert len(server.peers) == 2


@pytest.mark.parametrize("size", [40_000, 400_000, 4_000_000])
async def test_after_a_large_request_that_was_read_a_plain_connection_is_used_again(
    size: int,
) -> None:
    async with fault_server(answering()) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            statuses = [(await client.post(url, body=bytes(size))).status for _ in range(20)]
    assert statuses == [200] * 20
    assert len(server.peers) == 1


async def test_where_the_kernel_does_not_tell_only_small_requests_leave_a_connection_in_use(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*arguments: object) -> bytes:
        raise OSError(ENOTTY, "Inappropriate ioctl for device")

    monkeypatch.setattr(http_connection, "ioctl", refused)
    async with fault_server(answering()) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            counts = []
            for size in (30_000, 40_000, 30_000):
                assert (await client.post(url, body=bytes(size))).status == 200
                counts.append(len(server.peers))
    assert counts == [1, 1, 2]


@pytest.mark.parametrize(("size", "connections"), [(30_000, 1), (40_000, 2)])
async def test_after_a_large_request_a_connection_with_tls_is_not_used_again(
    size: int, connections: int, authority: Authority, trusting: ssl.SSLContext
) -> None:
    """Whether all of it has left is not to be seen there."""
    context = authority.server_context("receiver.example")
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            url = f"https://receiver.example:{server.port}/"
            statuses = [(await client.post(url, body=bytes(size))).status for _ in range(2)]
    assert statuses == [200, 200]
    assert len(server.peers) == connections
