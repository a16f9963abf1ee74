"""TLS: a receiver proves its name with a certificate, or is not spoken to."""

import asyncio
import gc
import ssl
from typing import Any
from weakref import WeakSet

import pytest

from cuepost.adapters import guarded_dialler
from cuepost.adapters.answer_reader import BODY_KEPT
from cuepost.adapters.guarded_transport import tls_context
from cuepost.adapters.http_connection import HttpConnection
from cuepost.domain.attempt import Outcome
from cuepost.ports.transport import Exchange
from tests.adapters.sender import AMPLE_SECONDS, open_sockets, sender, settled
from tests.support.certificates import Authority
from tests.support.fault_server import (
    OK,
    Peer,
    Script,
    answering,
    fault_server,
    silence,
)

NAME = "receiver.example"
SHORT_SECONDS = 0.4


async def fault_of(
    trusting: ssl.SSLContext, script: Script, seconds: float = AMPLE_SECONDS
) -> Outcome | None:
    async with fault_server(script) as server:
        with sender(tls=trusting) as client:
            fault = await client.fault(f"https://{NAME}:{server.port}/", seconds)
    assert not server.requests
    return fault


def test_verification_is_on_and_old_versions_are_off() -> None:
    context = tls_context()
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.check_hostname
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert context.get_ca_certs()


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_valid_certificate_is_accepted(
    version: ssl.TLSVersion, authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context(NAME, "*.receiver.example", "127.0.0.1")
    context.minimum_version = context.maximum_version = version
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            for host in (NAME, f"a.{NAME}", "127.0.0.1"):
                assert (await client.post(f"https://{host}:{server.port}/")).status == 200


async def test_a_stalled_handshake_is_a_timeout(trusting: ssl.SSLContext) -> None:
    fault = await fault_of(trusting, silence, SHORT_SECONDS)
    assert fault is Outcome.TIMEOUT


async def test_a_dripped_handshake_is_a_timeout(trusting: ssl.SSLContext) -> None:
    async def script(peer: Peer) -> None:
        await peer.drip(b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" + bytes(10_000), 0.02)

    fault = await fault_of(trusting, script, SHORT_SECONDS)
    assert fault is Outcome.TIMEOUT


@pytest.mark.parametrize(
    "said", [b"", b"\x15\x03\x03\x00\x02\x02\x28", b"HTTP/1.1 400 Bad\r\n\r\n"]
)
async def test_a_handshake_that_runs_out_of_time_leaves_no_unretrieved_error(
    said: bytes, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something is said, that crosses with the deadline, each time at another moment."""

    async def script(peer: Peer) -> None:
        await peer.some_bytes()
        peer.send(said)
        await peer.wait_until_gone()

    def noted(*arguments: Any) -> HttpConnection:
        connection = HttpConnection(*arguments)
        kept.add(connection)
        return connection

    kept = WeakSet[HttpConnection]()
    left: list[dict[str, Any]] = []
    monkeypatch.setattr(guarded_dialler, "HttpConnection", noted)
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: left.append(context))
    async with fault_server(script) as server, asyncio.timeout(10):
        with sender(tls=trusting) as client:
            url = f"https://{NAME}:{server.port}/"
            faults = {await client.fault(url, moment / 5000) for moment in range(1, 60)}
            while kept:
                await loop.run_in_executor(None, gc.collect)
    loop.set_exception_handler(None)
    assert Outcome.TIMEOUT in faults
    assert left == []


@pytest.mark.parametrize("ending", ["close", "reset"])
async def test_an_end_within_the_handshake_is_a_connect_error(
    ending: str, trusting: ssl.SSLContext
) -> None:
    """TLS is not at fault: that is how a balancer without a server behind it looks."""

    async def script(peer: Peer) -> None:
        if ending == "close":
            await peer.close()
        else:
            peer.reset()

    assert await fault_of(trusting, script) is Outcome.CONNECT_ERROR


async def test_a_failed_handshake_leaves_no_socket(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context("other.example")
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            before = open_sockets()
            url = f"https://{NAME}:{server.port}/"
            faults = [await client.fault(url) for _ in range(20)]
            await settled(sockets=before)
    assert faults == [Outcome.TLS_ERROR] * 20


async def test_a_request_that_is_cancelled_at_any_moment_leaves_no_socket(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    async with fault_server(answering(), tls=authority.server_context(NAME)) as server:
        before = open_sockets()
        with sender(tls=trusting, most_idle=0) as client:
            url = f"https://{NAME}:{server.port}/"
            took = (await client.post(url)).duration_ms
            for moment in range(40):
                try:
                    async with asyncio.timeout(took / 1000 * moment / 30):
                        await client.post(url)
                except TimeoutError:
                    continue
            await settled(sockets=before)


async def test_a_request_that_is_cancelled_at_the_end_of_the_handshake_waits_for_no_farewell(
    authority: Authority, trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def script(peer: Peer) -> None:
        peer.transport.pause_reading()
        await peer.wait_until_gone()

    def cancelling(connection: HttpConnection, transport: asyncio.BaseTransport) -> None:
        made(connection, transport)
        sending.cancel()

    made = HttpConnection.connection_made
    monkeypatch.setattr(HttpConnection, "connection_made", cancelling)
    async with fault_server(script, tls=authority.server_context(NAME)) as server:
        with sender(tls=trusting) as client:
            async with asyncio.TaskGroup() as group:
                sending = group.create_task(client.post(f"https://{NAME}:{server.port}/"))
            assert sending.cancelled()
            await asyncio.wait_for(server.peers[0].gone.wait(), 5)


async def test_a_request_that_is_cancelled_at_the_start_of_the_handshake_is_soon_forgotten(
    trusting: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loop forgets to tell its TLS half, which keeps it all until its own limit has passed."""

    def noted(loop: asyncio.AbstractEventLoop, *rest: Any) -> HttpConnection:
        connection = HttpConnection(loop, *rest)
        kept.add(connection)
        # One round from now, just before the loop tells the task that TCP is ready.
        loop.call_soon(lambda: loop.call_soon(cancel))
        return connection

    def cancel() -> None:
        sending[0].cancel()

    kept = WeakSet[HttpConnection]()
    sending: list[asyncio.Task[Exchange]] = []
    monkeypatch.setattr(guarded_dialler, "HttpConnection", noted)
    async with fault_server(silence) as server, asyncio.timeout(10):
        with sender(tls=trusting) as client:
            async with asyncio.TaskGroup() as group:
                url = f"https://{NAME}:{server.port}/"
                sending.append(group.create_task(client.post(url, SHORT_SECONDS)))
            assert sending.pop().cancelled()
            while kept:
                await asyncio.get_running_loop().run_in_executor(None, gc.collect)


async def test_a_connection_closed_while_it_rests_fails_no_request(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        for _ in range(2):
            await peer.request()
            peer.send(OK)
        await peer.close()

    async with fault_server(script, tls=authority.server_context(NAME)) as server:
        with sender(tls=trusting) as client:
            url = f"https://{NAME}:{server.port}/"
            statuses = [(await client.post(url)).status for _ in range(60)]
    assert statuses == [200] * 60


@pytest.mark.parametrize("head", [b"content-length: 10000000000\r\n", b""])
async def test_an_endless_body_is_cut_under_tls_too(
    head: bytes, authority: Authority, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n")
        await peer.send_endlessly(b"x" * 65_536)

    async with fault_server(script, tls=authority.server_context(NAME)) as server:
        with sender(tls=trusting) as client:
            exchange = await client.post(f"https://{NAME}:{server.port}/")
    assert (exchange.status, exchange.body) == (200, b"x" * BODY_KEPT)
    assert exchange.truncated


async def test_a_body_that_ends_with_the_connection_is_whole_under_tls_too(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(b"HTTP/1.1 200 OK\r\n\r\nhello")
        await peer.close()

    async with fault_server(script, tls=authority.server_context(NAME)) as server:
        with sender(tls=trusting) as client:
            exchange = await client.post(f"https://{NAME}:{server.port}/")
    assert (exchange.status, exchange.body, exchange.truncated) == (200, b"hello", False)
