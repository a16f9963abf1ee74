"""Many receivers in one network of loopback addresses, each of which takes connections in its way.

A name is looked up for every new connection, so what the resolver says decides how that one goes.
All listen on the same port; 127.0.0.66 is there too, and no one may ever knock.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from random import Random

from cuepost.domain.attempt import Outcome, TlsFault
from cuepost.ports.transport import CannotResolve
from tests.adapters.hostile.conduct import end
from tests.adapters.sender import Answers, loopback_policy
from tests.support.certificates import Authority, only_tls_1_1
from tests.support.fault_server import (
    FaultServer,
    Peer,
    Script,
    fault_server,
    full_backlog,
    refusing_handshake,
    silence,
)

DENIED = "127.0.0.66"
POLICY = loopback_policy("127.0.1.0/24")
NAMES = "*.receiver.example"
OLD_HELLO = b"\x16\x03\x03\x40\x00\x02\x00\x3f\xfc\x03\x03" + bytes(10_000)
PLAIN_TEXT = b"HTTP/1.1 400 Bad\r\n\r\n"
ALERT = b"\x15\x03\x03\x00\x02\x02\x28"

_HOSTS = (
    "plain",
    "tls 1.3",
    "tls 1.2",
    "refused",
    "black hole",
    "close",
    "reset",
    "speaks first",
    "expired",
    "early",
    "wrong name",
    "unknown authority",
    "old version",
    "wants a certificate",
    "plain text",
    "alert",
    "stalled",
    "dripped",
)
ADDRESSES: Mapping[str, str] = {name: f"127.0.1.{n}" for n, name in enumerate(_HOSTS, 1)}


@dataclass(frozen=True, slots=True)
class Way:
    """What a look-up says, and the fault that has to come of it; none where requests are served."""

    name: str
    answers: Answers
    fault: Outcome | None = None
    tls_fault: TlsFault | None = None
    slow: bool = False

    @property
    def serves(self) -> bool:
        return self.fault is None


def _to(name: str, fault: Outcome, tls_fault: TlsFault | None = None) -> Way:
    return Way(name, [ADDRESSES[name]], fault, tls_fault)


def _denied(*answers: str) -> Way:
    return Way(f"denied {answers}", answers, Outcome.BLOCKED_DESTINATION)


_FINE = {"http": ("plain",), "https": ("tls 1.3", "tls 1.3", "tls 1.2")}
_ANY_SCHEME = (
    Way("no name", CannotResolve(), Outcome.BLOCKED_DESTINATION),
    Way("no resolver", OSError("resolv.conf is gone"), Outcome.BLOCKED_DESTINATION),
    Way("slow resolver", TimeoutError(), Outcome.BLOCKED_DESTINATION),
    Way("no address", [], Outcome.BLOCKED_DESTINATION),
    _denied(DENIED),
    _denied("10.0.0.1"),
    _denied("169.254.169.254"),
    _denied(ADDRESSES["plain"], DENIED),
    _denied(DENIED, ADDRESSES["tls 1.3"]),
    _denied(ADDRESSES["plain"], ADDRESSES["tls 1.3"], ADDRESSES["refused"], "::1"),
    _denied("::ffff:127.0.1.1"),
    _to("refused", Outcome.CONNECT_ERROR),
    _to("close", Outcome.CONNECT_ERROR),
    _to("reset", Outcome.CONNECT_ERROR),
)
_QUICK = {
    "http": (*_ANY_SCHEME, _to("speaks first", Outcome.PROTOCOL_ERROR)),
    "https": (
        *_ANY_SCHEME,
        _to("expired", Outcome.TLS_ERROR, TlsFault.CERTIFICATE_EXPIRED),
        _to("early", Outcome.TLS_ERROR, TlsFault.CERTIFICATE_NOT_YET_VALID),
        _to("wrong name", Outcome.TLS_ERROR, TlsFault.CERTIFICATE_WRONG_HOST),
        _to("unknown authority", Outcome.TLS_ERROR, TlsFault.CERTIFICATE_UNKNOWN_AUTHORITY),
        _to("old version", Outcome.TLS_ERROR, TlsFault.TLS_TOO_OLD),
        _to("wants a certificate", Outcome.TLS_ERROR, TlsFault.TLS_HANDSHAKE_FAILED),
        _to("plain text", Outcome.TLS_ERROR, TlsFault.TLS_HANDSHAKE_FAILED),
        _to("alert", Outcome.TLS_ERROR, TlsFault.TLS_HANDSHAKE_FAILED),
    ),
}
_SLOW = {"http": ("black hole",), "https": ("black hole", "stalled", "dripped")}


def fine_way(chance: Random, scheme: str) -> Way:
    fine = ADDRESSES[chance.choice(_FINE[scheme])]
    if chance.random() < 0.1:
        return Way("second address", [ADDRESSES["refused"], fine])
    return Way("fine", [fine])


def quick_way(chance: Random, scheme: str) -> Way:
    return chance.choice(_QUICK[scheme])


def slow_way(chance: Random, scheme: str) -> Way:
    name = chance.choice((*_SLOW[scheme], "hanging look-up", "swallowing first address"))
    if name == "hanging look-up":
        return Way(name, asyncio.Event(), Outcome.TIMEOUT, slow=True)
    if name == "swallowing first address":
        return Way(name, [ADDRESSES["black hole"], ADDRESSES[_FINE[scheme][0]]], slow=True)
    return Way(name, [ADDRESSES[name]], Outcome.TIMEOUT, slow=True)


class Certificates:
    """Made once: that takes longer than a mix."""

    def __init__(self, authority: Authority) -> None:
        self.fine = authority.server_context(NAMES)
        self.older = authority.server_context(NAMES)
        self.older.maximum_version = ssl.TLSVersion.TLSv1_2
        self.bad = {
            "expired": authority.server_context(NAMES, expired=True),
            "early": authority.server_context(NAMES, early=True),
            "wrong name": authority.server_context("other.example"),
            "unknown authority": Authority("Someone else").server_context(NAMES),
        }
        self.old_version = only_tls_1_1(authority.server_context(NAMES))
        self.wanting = authority.server_context(NAMES)
        self.wanting.verify_mode = ssl.CERT_REQUIRED


async def _says(peer: Peer, said: bytes) -> None:
    peer.send(said)
    await peer.wait_until_gone()


async def _replies(peer: Peer, said: bytes) -> None:
    """Not before it was spoken to, as is the way of servers that expected something else."""
    await peer.some_bytes()
    await _says(peer, said)


def _hosts(
    serve: Script, certificates: Certificates
) -> dict[str, tuple[Script, ssl.SSLContext | None]]:
    return {
        "plain": (serve, None),
        "tls 1.3": (serve, certificates.fine),
        "tls 1.2": (serve, certificates.older),
        "close": (partial(end, ending="close"), None),
        "reset": (partial(end, ending="reset"), None),
        "speaks first": (partial(_says, said=b"SSH-2.0-OpenSSH_9.6\r\n"), None),
        "old version": (refusing_handshake(certificates.old_version), None),
        "wants a certificate": (refusing_handshake(certificates.wanting), None),
        "plain text": (partial(_replies, said=PLAIN_TEXT), None),
        "alert": (partial(_replies, said=ALERT), None),
        "stalled": (silence, None),
        "dripped": (partial(Peer.drip, data=OLD_HELLO, seconds=0.02), None),
        **{name: (serve, context) for name, context in certificates.bad.items()},
    }


@dataclass(frozen=True, slots=True)
class HostileNetwork:
    port: int
    denied: FaultServer


@asynccontextmanager
async def network(serve: Script, certificates: Certificates) -> AsyncIterator[HostileNetwork]:
    """`serve` is what those do who are ready for a request."""
    try:
        async with _opened(serve, certificates) as receivers:
            yield receivers
    except ExceptionGroup as errors:
        # Each host has wrapped it once more.
        error: Exception = errors
        while isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        raise error from None


@asynccontextmanager
async def _opened(serve: Script, certificates: Certificates) -> AsyncIterator[HostileNetwork]:
    async with AsyncExitStack() as interfaces:
        denied = await interfaces.enter_async_context(fault_server(silence, DENIED))
        interfaces.enter_context(full_backlog(ADDRESSES["black hole"], denied.port))
        for name, (script, context) in _hosts(serve, certificates).items():
            await interfaces.enter_async_context(
                fault_server(script, ADDRESSES[name], denied.port, context)
            )
        yield HostileNetwork(denied.port, denied)
