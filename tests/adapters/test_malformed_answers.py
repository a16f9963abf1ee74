"""Answers that are not HTTP, or no longer HTTP from some point on."""

import pytest

from cuepost.domain.attempt import Outcome
from tests.adapters.sender import sender
from tests.support.fault_server import OK, Peer, answering, answering_once, fault_server

HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "chunks", [b"zz\r\nhello", b"5\r\nhelloX", b"ffffffffffffffffff\r\nhello", b"-1\r\nhello"]
)
async def test_bad_chunks_do_not_undo_the_status(chunks: bytes) -> None:
    answer = HEAD + b"transfer-encoding: chunked\r\n\r\n" + chunks
    async with fault_server(answering(answer)) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert (exchange.status, exchange.truncated) == (200, True)
    assert exchange.body in (b"", b"hello")


@pytest.mark.parametrize(
    "answer",
    [
        b"hello\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"220 mail.example ESMTP\r\n",
        b"RTSP/1.0 200 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n" + OK,
        b"HTTP/1.1 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\n\n",
        HEAD + b"a b: c\r\n\r\n",
        HEAD + b"a: b\r\n c\r\n\r\n",
        HEAD + b"a: \x00\r\n\r\n",
        HEAD + b"content-length: -1\r\n\r\n",
        HEAD + b"content-length: 99999999999999999999\r\n\r\n",
        HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nx",
        HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n" + OK,
        b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n" + OK,
        b"HTTP/1.1 110 Odd\r\ncontent-length: 2\r\n\r\nok" + OK,
        bytes(100),
        b"\xff\xfe" * 100,
    ],
)
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
