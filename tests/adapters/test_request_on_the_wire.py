"""What a receiver sees of a request: the line, the host, the name in TLS, and nothing else."""

import asyncio
import socket
import ssl

import pytest

from cuepost.adapters import guarded_dialler
from cuepost.domain.attempt import Timings
from cuepost.domain.egress_policy import Address
from cuepost.ports.transport import Exchange
from tests.adapters.sender import (
    BODY,
    ConnectionRecord,
    loopback_policy,
    sender,
    total_ms,
)
from tests.support.certificates import Authority
from tests.support.fault_server import ReceivedRequest, answering, fault_server, silence

MAPPED_LOOPBACK = "::ffff:127.0.0.1"


async def test_a_request_is_a_post_with_the_given_headers_in_their_order() -> None:
    async with fault_server(answering()) as server:
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/hook?a=b&c=%20")
    assert server.requests == [
        ReceivedRequest(
            "POST /hook?a=b&c=%20 HTTP/1.1",
            (
                ("host", f"receiver.example:{server.port}"),
                ("content-type", "application/json"),
                ("webhook-id", "0193e4a0"),
                ("content-length", str(len(BODY))),
            ),
            BODY,
        )
    ]
    assert exchange == Exchange(
        duration_ms=exchange.duration_ms,
        timings=exchange.timings,
        status=200,
        headers=(("content-length", "2"),),
        body=b"ok",
    )


async def test_phases_are_timed_and_add_up(authority: Authority, trusting: ssl.SSLContext) -> None:
    context = authority.server_context("receiver.example")
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            url = f"https://receiver.example:{server.port}/"
            first = await client.post(url)
            second = await client.post(url)
    assert None not in (
        first.timings.dns_ms,
        first.timings.connect_ms,
        first.timings.tls_ms,
        first.timings.first_byte_ms,
    )
    assert 0 < total_ms(first.timings) <= first.duration_ms
    # Over the same connection there is nothing to look up, to connect and to negotiate.
    assert second.timings == Timings(first_byte_ms=second.timings.first_byte_ms)
    assert 0 < total_ms(second.timings) <= second.duration_ms


async def test_a_literal_address_is_not_looked_up() -> None:
    async with fault_server(answering()) as server:
        with sender() as client:
            exchange = await client.post(f"http://127.0.0.1:{server.port}/")
    assert exchange.status == 200
    assert exchange.timings.dns_ms is None
    assert not client.resolver.look_ups
    assert server.requests[0].header("host") == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize(
    ("host", "shown", "name_in_tls"),
    [
        ("receiver.example", "receiver.example", "receiver.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("127.0.0.1", "127.0.0.1", None),
        (f"[{MAPPED_LOOPBACK}]", "[::ffff:7f00:1]", None),
    ],
)
async def test_host_and_certificate_are_of_the_name_and_literals_are_not_sent_as_names(
    host: str, shown: str, name_in_tls: str | None, authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context(host.strip("[]"))
    policy = loopback_policy("127.0.0.1/32", "::ffff:127.0.0.0/104")
    async with fault_server(answering(), tls=context) as server:
        with sender(policy, trusting) as client:
            exchange = await client.post(f"https://{host}:{server.port}/")
    assert exchange.status == 200
    [request] = server.requests
    assert request.header("host").replace("::ffff:127.0.0.1", "::ffff:7f00:1") == (
        f"{shown}:{server.port}"
    )
    assert server.names_asked_for == [name_in_tls]


@pytest.mark.parametrize(("scheme", "default"), [("http", 80), ("https", 443)])
async def test_a_default_port_is_called_but_not_named(
    scheme: str,
    default: int,
    authority: Authority,
    trusting: ssl.SSLContext,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def diverted(
        loop: asyncio.AbstractEventLoop, address: Address, port: int
    ) -> socket.socket:
        ports.append(port)
        return await connected_to(loop, address, server.port)

    ports: list[int] = []
    connected_to = guarded_dialler._connected_to
    monkeypatch.setattr(guarded_dialler, "_connected_to", diverted)
    context = authority.server_context("receiver.example") if scheme == "https" else None
    async with fault_server(answering(), tls=context) as server:
        with sender(tls=trusting) as client:
            exchange = await client.post(f"{scheme}://receiver.example/")
    assert exchange.status == 200
    assert ports == [default]
    assert server.requests[0].header("host") == "receiver.example"


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with fault_server(silence) as proxy, fault_server(answering()) as server:
        for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        with sender() as client:
            exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert exchange.status == 200
    assert not proxy.peers


@pytest.mark.parametrize("value", ["a\r\nhost: other", "a\nb", "a\rb"])
async def test_a_line_break_in_a_header_never_reaches_the_wire(value: str) -> None:
    headers = (("webhook-id", value),)
    with (
        ConnectionRecord.kept() as destinations,
        sender() as client,
        pytest.raises(ValueError, match="line break"),
    ):
        await client.post("http://receiver.example/", headers=headers)
    assert destinations == []


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_an_answer_and_is_not_followed(status: int) -> None:
    async with fault_server(answering()) as other:
        location = f"http://127.0.0.1:{other.port}/elsewhere"
        answer = f"HTTP/1.1 {status} Moved\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n"
        async with fault_server(answering(answer.encode())) as server:
            with sender() as client:
                exchange = await client.post(f"http://receiver.example:{server.port}/")
    assert exchange.status == status
    assert exchange.headers == (("location", location), ("content-length", "0"))
    assert not other.peers
