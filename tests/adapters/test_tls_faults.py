"""Why TLS failed is told in one of six words, whatever the receiver said."""

import ssl

import pytest

from cuepost.adapters.guarded_transport import tls_context
from cuepost.adapters.tls_faults import fault_in
from cuepost.domain.attempt import Outcome, TlsFault
from tests.adapters.sender import sender
from tests.support.certificates import Authority, only_tls_1_1
from tests.support.fault_server import Peer, Script, answering, fault_server, refusing_handshake

NAME = "receiver.example"


async def tls_fault_of(
    context: ssl.SSLContext | None, trusting: ssl.SSLContext, script: Script, host: str = NAME
) -> TlsFault | None:
    async with fault_server(script, tls=context) as server:
        with sender(tls=trusting) as client:
            exchange = await client.failed(f"https://{host}:{server.port}/")
    assert not server.requests
    assert exchange.fault is Outcome.TLS_ERROR
    return exchange.tls_fault


async def test_an_expired_certificate_is_a_tls_error(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context(NAME, expired=True)
    found = await tls_fault_of(context, trusting, answering())
    assert found is TlsFault.CERTIFICATE_EXPIRED


async def test_a_certificate_from_the_future_is_a_tls_error(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context(NAME, early=True)
    found = await tls_fault_of(context, trusting, answering())
    assert found is TlsFault.CERTIFICATE_NOT_YET_VALID


@pytest.mark.parametrize(
    ("certified", "host"),
    [
        ("other.example", NAME),
        ("*.receiver.example", NAME),
        ("127.0.0.1", NAME),
        (NAME, "127.0.0.1"),
        ("127.0.0.2", "127.0.0.1"),
    ],
)
async def test_a_certificate_for_another_name_is_a_tls_error(
    certified: str, host: str, authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = authority.server_context(certified)
    found = await tls_fault_of(context, trusting, answering(), host)
    assert found is TlsFault.CERTIFICATE_WRONG_HOST


async def test_an_unknown_authority_is_a_tls_error(trusting: ssl.SSLContext) -> None:
    for name, trusted in (("Test authority", trusting), ("Someone else", tls_context())):
        context = Authority(name).server_context(NAME)
        found = await tls_fault_of(context, trusted, answering())
        assert found is TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY


async def test_an_old_version_is_a_tls_error(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    context = only_tls_1_1(authority.server_context(NAME))
    script = refusing_handshake(context)
    assert await tls_fault_of(None, trusting, script) is TlsFault.TLS_TOO_OLD


async def test_a_certificate_that_is_wanted_from_us_is_a_tls_error(
    authority: Authority, trusting: ssl.SSLContext
) -> None:
    """With TLS 1.3 the refusal comes after our side of the handshake."""
    context = authority.server_context(NAME)
    context.verify_mode = ssl.CERT_REQUIRED
    script = refusing_handshake(context)
    assert await tls_fault_of(None, trusting, script) is TlsFault.TLS_HANDSHAKE_FAILED


@pytest.mark.parametrize("garbage", [b"HTTP/1.1 400 Bad\r\n\r\n", b"\x15\x03\x03\x00\x02\x02\x28"])
async def test_a_handshake_answered_with_something_else_is_a_tls_error(
    garbage: bytes, trusting: ssl.SSLContext
) -> None:
    async def script(peer: Peer) -> None:
        peer.send(garbage)
        await peer.wait_until_gone()

    assert await tls_fault_of(None, trusting, script) is TlsFault.TLS_HANDSHAKE_FAILED


async def test_an_answer_in_an_old_version_is_a_tls_error(trusting: ssl.SSLContext) -> None:
    """A server that knows no alert for that goes on as if TLS 1.0 had been agreed on."""
    hello = b"\x03\x01" + bytes(32) + b"\x00" + b"\xc0\x13" + b"\x00"
    message = b"\x02" + len(hello).to_bytes(3) + hello

    async def script(peer: Peer) -> None:
        peer.send(b"\x16\x03\x01" + len(message).to_bytes(2) + message)
        await peer.wait_until_gone()

    assert await tls_fault_of(None, trusting, script) is TlsFault.TLS_TOO_OLD


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        (2, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        (9, TlsFault.CERTIFICATE_NOT_YET_VALID),
        (10, TlsFault.CERTIFICATE_EXPIRED),
        (18, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        (19, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        (20, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        (21, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        (26, TlsFault.TLS_HANDSHAKE_FAILED),
        (62, TlsFault.CERTIFICATE_WRONG_HOST),
        (64, TlsFault.CERTIFICATE_WRONG_HOST),
    ],
)
def test_a_certificate_is_judged_by_its_number_alone(code: int, fault: TlsFault) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate has expired")
    error.verify_code = code
    assert fault_in(error) is fault
