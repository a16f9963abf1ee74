"""Opens connections to receivers, and only to addresses that the egress policy allows.

A name is resolved once for each connection, every resolved address must be allowed, and the
connection goes to a checked address. The name is used only for SNI and to verify the certificate.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from time import perf_counter
from typing import Final

from cuepost.adapters.http_connection import ConnectionPool, HttpConnection
from cuepost.domain.egress_policy import Address, EgressPolicy, Verdict, judge_answers
from cuepost.domain.receiver_url import ReceiverUrl
from cuepost.ports.transport import CannotResolve, Resolver

# How long the check of an address stays valid.
LONGEST_CONNECTION_LIFE_SECONDS: Final = 60.0
# All addresses of a name are checked, but only a few are tried: a name with thousands of addresses
# must not make the service connect to each of them.
MOST_TRIED_OF_A_FAMILY: Final = 2
_READ_BUFFER_SIZE: Final = 16 * 1024
# The loop's own handshake timeout must not expire before the deadline. It must be short as well:
# if the handshake is cancelled at the wrong moment, the loop keeps the connection until then.
_AFTER_THE_DEADLINE_SECONDS: Final = 1.0


class Blocked(Exception):
    """The policy does not allow one of the receiver's addresses."""


@dataclass(slots=True)
class PhaseTimings:
    """The deadline of an attempt, and how long its phases took.

    A failed phase has a time too; a phase that was not reached has none.
    """

    deadline: float
    dns_ms: float | None = None
    connect_ms: float | None = None
    tls_ms: float | None = None


class GuardedDialler:
    def __init__(self, policy: EgressPolicy, resolver: Resolver, tls: ssl.SSLContext) -> None:
        self._policy = policy
        self._resolver = resolver
        self._tls = tls
        self._buffer = memoryview(bytearray(_READ_BUFFER_SIZE))

    async def open(
        self, url: ReceiverUrl, phases: PhaseTimings, pool: ConnectionPool
    ) -> HttpConnection:
        """Raises Blocked, CannotResolve, ssl.SSLError, TimeoutError or another OSError."""
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(phases.deadline - perf_counter()):
            addresses = await self._checked_addresses(url, phases)
            expires_at = perf_counter() + LONGEST_CONNECTION_LIFE_SECONDS
            sock = await _connected(loop, addresses, url.port, phases)
            receiver = (url.scheme, url.host, url.port)
            connection = HttpConnection(loop, receiver, self._buffer, expires_at, pool)
            await self._start(loop, connection, sock, url, phases)
            return connection

    async def _checked_addresses(self, url: ReceiverUrl, phases: PhaseTimings) -> Sequence[Address]:
        # Parsing the URL checks these too; here they are checked for each connection.
        if not self._policy.allows_port(url.port):
            raise Blocked
        if url.scheme != "https" and not self._policy.allow_http:
            raise Blocked
        addresses = await self._addresses(url, phases)
        if judge_answers(addresses, self._policy) is not Verdict.ALLOWED:
            raise Blocked
        return addresses

    async def _addresses(self, url: ReceiverUrl, phases: PhaseTimings) -> Sequence[Address]:
        if url.address is not None:
            return (url.address,)
        began = perf_counter()
        try:
            addresses = await self._resolver.addresses(url.host)
        except OSError as error:
            raise CannotResolve from error
        finally:
            phases.dns_ms = _ms_since(began)
        if not addresses:
            raise CannotResolve
        return addresses

    async def _start(
        self,
        loop: asyncio.AbstractEventLoop,
        connection: HttpConnection,
        sock: socket.socket,
        url: ReceiverUrl,
        phases: PhaseTimings,
    ) -> None:
        began = perf_counter()
        handshake_timeout = max(0.0, phases.deadline - began) + _AFTER_THE_DEADLINE_SECONDS
        try:
            if url.scheme == "https":
                await loop.create_connection(
                    lambda: connection,
                    sock=sock,
                    ssl=self._tls,
                    server_hostname=url.host,
                    ssl_handshake_timeout=handshake_timeout,
                )
            else:
                await loop.create_connection(lambda: connection, sock=sock)
        except BaseException:
            # If cancelled at the wrong moment, the loop would wait for an orderly TLS shutdown.
            connection.abort()
            sock.close()
            raise
        finally:
            if url.scheme == "https":
                phases.tls_ms = _ms_since(began)


def _to_try(addresses: Sequence[Address]) -> Sequence[Address]:
    """The first addresses of both families, alternating, in case one family does not work."""
    first = addresses[0].version
    same = [address for address in addresses if address.version == first]
    other = [address for address in addresses if address.version != first]
    pairs = zip_longest(same[:MOST_TRIED_OF_A_FAMILY], other[:MOST_TRIED_OF_A_FAMILY])
    return [address for address in chain.from_iterable(pairs) if address is not None]


async def _connected(
    loop: asyncio.AbstractEventLoop,
    addresses: Sequence[Address],
    port: int,
    phases: PhaseTimings,
) -> socket.socket:
    began = perf_counter()
    try:
        return await _connected_to_first(loop, _to_try(addresses), port, phases.deadline)
    finally:
        phases.connect_ms = _ms_since(began)


async def _connected_to_first(
    loop: asyncio.AbstractEventLoop, addresses: Sequence[Address], port: int, deadline: float
) -> socket.socket:
    """Tries the addresses one after the other, until one accepts the connection.

    Each address but the last gets an equal share of the remaining time, and one share is reserved
    for the answer: an address that drops packets must not use up the time of one that works.
    """
    for untried in range(len(addresses), 1, -1):
        share = (deadline - perf_counter()) / (untried + 1)
        try:
            async with asyncio.timeout(share):
                return await _connected_to(loop, addresses[-untried], port)
        except OSError:
            continue
    return await _connected_to(loop, addresses[-1], port)


async def _connected_to(
    loop: asyncio.AbstractEventLoop, address: Address, port: int
) -> socket.socket:
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, (str(address), port))
    except BaseException:
        sock.close()
        raise
    return sock


def _ms_since(began: float) -> float:
    return (perf_counter() - began) * 1000
