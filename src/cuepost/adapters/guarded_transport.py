"""The only code that sends to receivers: one POST to one receiver, at a checked address.

Redirects are not followed, proxies of the environment are ignored, and nothing is decompressed.
Each failure becomes an outcome, for TLS with a fault, and no other detail: the owner of an endpoint
must not see messages of resolvers or peers. A name without an address and a name with a denied
address have the same outcome and duration; only the operator can tell them apart.
"""

import ssl
from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial
from math import floor
from time import perf_counter
from typing import Final

from cuepost.adapters.answer_reader import BadAnswer
from cuepost.adapters.connection_pool import ConnectionPool
from cuepost.adapters.guarded_dialler import Blocked, GuardedDialler, PhaseTimings
from cuepost.adapters.http_connection import ConnectionBroke, HttpConnection, TlsBroke
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.http_message import message
from cuepost.ports.transport import CannotResolve, Exchange, Request, Resolver

MOST_IDLE_CONNECTIONS: Final = 256
# Longer than nearly every DNS lookup.
UNUSABLE_SECONDS: Final = 1.0
_REQUEST_TIMEOUT: Final = 408

# The first match counts: a TimeoutError is also an OSError, and TlsBroke also a ConnectionBroke.
_FAULTS: Final[Mapping[type[Exception], Outcome]] = {
    TimeoutError: Outcome.TIMEOUT,
    BadAnswer: Outcome.PROTOCOL_ERROR,
    TlsBroke: Outcome.TLS_ERROR,
    ConnectionBroke: Outcome.CONNECT_ERROR,
    OSError: Outcome.CONNECT_ERROR,
}


class Unusable(StrEnum):
    """Why a name cannot be used; shown only to the operator."""

    NOT_RESOLVED = "dns_error"
    BLOCKED = "blocked_destination"


class GuardedTransport:
    """Calls `on_unusable` for each name that could not be used."""

    def __init__(
        self,
        policy: EgressPolicy,
        resolver: Resolver,
        tls: ssl.SSLContext,
        most_idle: int = MOST_IDLE_CONNECTIONS,
        *,
        on_unusable: Callable[[Unusable, Request], None] = lambda why, request: None,
        unusable_seconds: float = UNUSABLE_SECONDS,
    ) -> None:
        self._on_unusable = on_unusable
        self._unusable_seconds = unusable_seconds
        self._dialler = GuardedDialler(policy, resolver, tls)
        self._pool = ConnectionPool(most_idle)

    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        url = request.url
        connection = self._pool.take((url.scheme, url.host, url.port))
        if connection is None or not connection.usable:
            return False
        began = perf_counter()
        settled = partial(self._settled, request, connection, began, done)
        whole = request.message or message(url, request.headers, request.body)
        connection.begin(whole, began + request.timeout_seconds, settled)
        return True

    def _settled(
        self,
        request: Request,
        connection: HttpConnection,
        began: float,
        done: Callable[[Exchange | None], None],
        failure: Exception | None,
    ) -> None:
        if _was_closed(connection, failure):
            request.sent_at = began
            done(None)
        elif failure is None:
            timings = Timings(None, None, None, connection.first_byte_ms)
            done(self._answered(connection, began, timings))
        else:
            done(_failed(failure, began, Timings()))

    async def send(self, request: Request) -> Exchange:
        began = request.sent_at or perf_counter()
        if request.url.inbox is not None:
            # Test inboxes are delivered to inside the service; reaching this is a wiring error.
            return Exchange(0.0, Timings(), Outcome.BLOCKED_DESTINATION)
        phases = PhaseTimings(began + request.timeout_seconds)
        try:
            connection = await self._exchanged(request, phases)
        except (CannotResolve, Blocked) as error:
            why = Unusable.BLOCKED if isinstance(error, Blocked) else Unusable.NOT_RESOLVED
            self._on_unusable(why, request)
            return await self._unusable(began, phases.deadline)
        except tuple(_FAULTS) as error:
            return _failed(error, began, Timings(phases.dns_ms, phases.connect_ms, phases.tls_ms))
        first_byte_ms = connection.first_byte_ms
        timings = Timings(phases.dns_ms, phases.connect_ms, phases.tls_ms, first_byte_ms)
        return self._answered(connection, began, timings)

    async def _unusable(self, began: float, deadline: float) -> Exchange:
        """Takes a whole number of periods, so that the duration does not reveal what was found."""
        period = self._unusable_seconds
        took = (floor((perf_counter() - began) / period) + 1) * period if period else 0.0
        took = min(took, deadline - began)
        await SystemClock().wait(max(began + took - perf_counter(), 0.0))
        return Exchange(took * 1000, Timings(), Outcome.BLOCKED_DESTINATION)

    def close(self) -> None:
        """Closes idle connections; a connection in use is closed after its request."""
        self._pool.close()

    async def _exchanged(self, request: Request, phases: PhaseTimings) -> HttpConnection:
        url = request.url
        whole = request.message or message(url, request.headers, request.body)
        # Only one idle connection is tried: a receiver that closes it may have read the request.
        receiver = (url.scheme, url.host, url.port)
        connection = self._pool.take(receiver) if request.sent_at is None else None
        if connection is not None:
            failure: Exception | None = None
            try:
                await connection.exchange(whole, phases.deadline)
            except ConnectionBroke as broke:
                failure = broke
            if not _was_closed(connection, failure):
                return connection
        connection = await self._dialler.open(url, phases, self._pool.forget)
        await connection.exchange(whole, phases.deadline)
        return connection

    def _answered(self, connection: HttpConnection, began: float, timings: Timings) -> Exchange:
        answer = connection.answer
        if connection.usable:
            self._pool.keep(connection)
        return Exchange(
            (perf_counter() - began) * 1000,
            timings,
            None,
            answer.status,
            tuple(answer.headers),
            answer.body,
            answer.truncated,
        )


def _was_closed(connection: HttpConnection, failure: Exception | None) -> bool:
    """Whether the receiver closed the connection while it was idle, so the request can be resent.

    A 408 that ends the connection answers the idle connection, not the request that crossed it.
    """
    if failure is not None:
        return isinstance(failure, ConnectionBroke)
    return not connection.usable and connection.answer.status == _REQUEST_TIMEOUT


def _failed(error: Exception, began: float, timings: Timings) -> Exchange:
    fault = next(_FAULTS[kind] for kind in _FAULTS if isinstance(error, kind))
    tls_fault = error.fault if isinstance(error, TlsBroke) else None
    return Exchange((perf_counter() - began) * 1000, timings, fault, tls_fault=tls_fault)


def tls_context(extra_ca_file: str | None = None) -> ssl.SSLContext:
    """Trusts the system's CAs and the operator's; verification cannot be switched off."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if extra_ca_file:
        context.load_verify_locations(extra_ca_file)
    return context
