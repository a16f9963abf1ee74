"""Answers that are not HTTP, or no longer HTTP from some point on."""

import pytest

from cuepost.domain.attempt import Outcome
from tests.adapters.hostile.unfriendly import BAD_CHUNKS, NOT_HTTP
from tests.adapters.sender import sender
from tests.support.fault_server import Peer, answering, answering_once, fault_server

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("chunks", BAD_CHUNKS)
async def test_bad_chunks_do_not_undo_the_status(chunks: bytes) -> None:
    answer = HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.truncated) == (200, True)
    assert exchange.body in (b"", b"hello")


@pytest.mark.parametrize("answer", NOT_HTTP)
async def test_what_is_not_an_answer_of_http_is_a_protocol_error(answer: bytes) -> None:
    async with fault_server(answering_once(answer)) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.PROTOCOL_ERROR


async def test_a_receiver_that_speaks_first_is_a_protocol_error() -> None:
    async def script(peer: Peer) -> None:
        peer.send(b"SSH-2.0-OpenSSH_9.6\r\n")
        await peer.wait_until_gone()

    async with fault_server(script) as server:
        with sender() as client:
            url = f"http://receiver.example:{server.port}/"
            assert await client.fault(url) is Outcome.PROTOCOL_ERROR
