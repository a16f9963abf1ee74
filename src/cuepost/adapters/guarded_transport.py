"""The only way out: one POST to one receiver, over a connection to a checked address.

Redirects are not followed, proxies of the environment are not known here, and nothing is
decompressed. Whatever goes wrong becomes one of the outcomes, and where TLS is at fault one of its
faults, without a word more: what a resolver or a peer said is not for the owner of an endpoint.
"""

import ssl
from collections.abc import Mapping
from time import perf_counter
from typing import Final

from cuepost.adapters.answer_reader import BadAnswer
from cuepost.adapters.connection_pool import ConnectionPool
from cuepost.adapters.guarded_dialler import Blocked, GuardedDialler, Journey
from cuepost.adapters.http_connection import ConnectionBroke, HttpConnection, TlsBroke
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.receiver_url import ReceiverUrl
from cuepost.ports.transport import CannotResolve, Exchange, Request, Resolver

MOST_RESTING_CONNECTIONS: Final = 256
_REQUEST_TIMEOUT: Final = 408
_DEFAULT_PORTS: Final = {"https": 443, "http": 80}

# The first kind that fits: a TimeoutError is an OSError too, and TlsBroke a ConnectionBroke.
_FAULTS: Final[Mapping[type[Exception], Outcome]] = {
    TimeoutError: Outcome.TIMEOUT,
    CannotResolve: Outcome.DNS_ERROR,
    Blocked: Outcome.BLOCKED_DESTINATION,
    BadAnswer: Outcome.PROTOCOL_ERROR,
    TlsBroke: Outcome.TLS_ERROR,
    ConnectionBroke: Outcome.CONNECT_ERROR,
    OSError: Outcome.CONNECT_ERROR,
}


class GuardedTransport:
    def __init__(
        self,
        policy: EgressPolicy,
        resolver: Resolver,
        tls: ssl.SSLContext,
        most_resting: int = MOST_RESTING_CONNECTIONS,
    ) -> None:
        self._dialler = GuardedDialler(policy, resolver, tls)
        self._pool = ConnectionPool(most_resting)

    async def send(self, request: Request) -> Exchange:
        began = perf_counter()
        if request.url.inbox is not None:
            # It has no place on the network; whoever sends it here was put together wrongly.
            return Exchange(0.0, Timings(), Outcome.BLOCKED_DESTINATION)
        journey = Journey(began + request.timeout_seconds)
        try:
            connection = await self._exchanged(request, journey)
        except tuple(_FAULTS) as error:
            timings = Timings(journey.dns_ms, journey.connect_ms, journey.tls_ms)
            fault = next(_FAULTS[kind] for kind in _FAULTS if isinstance(error, kind))
            tls_fault = error.fault if isinstance(error, TlsBroke) else None
            took_ms = (perf_counter() - began) * 1000
            return Exchange(took_ms, timings, fault, tls_fault=tls_fault)
        answer = connection.answer
        if connection.usable:
            self._pool.keep(connection)
        return Exchange(
            (perf_counter() - began) * 1000,
            Timings(journey.dns_ms, journey.connect_ms, journey.tls_ms, connection.first_byte_ms),
            None,
            answer.status,
            tuple(answer.headers),
            answer.body,
            answer.truncated,
        )

    def close(self) -> None:
        """Ends the connections that rest; one in use ends with its request."""
        self._pool.close()

    async def _exchanged(self, request: Request, journey: Journey) -> HttpConnection:
        url = request.url
        message = _message(request)
        connection = self._pool.take((url.scheme, url.host, url.port))
        if connection is not None:
            try:
                await connection.exchange(message, journey.deadline)
            except ConnectionBroke:
                # Closed by the receiver while it rested: no failure, and no answer either.
                pass
            else:
                if connection.usable or connection.answer.status != _REQUEST_TIMEOUT:
                    return connection
                # Said to the resting connection, not to the request that crossed with it.
        connection = await self._dialler.open(url, journey, self._pool.forget)
        await connection.exchange(message, journey.deadline)
        return connection


def _message(request: Request) -> bytes:
    url = request.url
    lines = [f"POST {url.target} HTTP/1.1", f"host: {_authority(url)}"]
    lines += [f"{name}: {value}" for name, value in request.headers]
    lines.append(f"content-length: {len(request.body)}")
    joined = "".join(lines)
    if "\r" in joined or "\n" in joined:
        raise ValueError("a line break in a header would begin another one")
    lines.append("\r\n")
    return "\r\n".join(lines).encode("ascii") + request.body


def _authority(url: ReceiverUrl) -> str:
    host = f"[{url.host}]" if ":" in url.host else url.host
    return host if url.port == _DEFAULT_PORTS[url.scheme] else f"{host}:{url.port}"


def tls_context(extra_ca_file: str | None = None) -> ssl.SSLContext:
    """The system's trust anchors, and the operator's; verification cannot be switched off."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if extra_ca_file:
        context.load_verify_locations(extra_ca_file)
    return context
