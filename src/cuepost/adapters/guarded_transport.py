"""The only code that sends to receivers: one POST to one receiver, at a checked address.

Redirects are not followed, proxies of the environment are ignored, and nothing is decompressed.
Each failure becomes an outcome, for TLS with a fault, and no other detail: the owner of an endpoint
must not see messages of resolvers or peers. A name without an address and a name with a denied
address have the same outcome and duration; only the operator can tell them apart.
"""

import ssl
from collections.abc import Callable
from enum import StrEnum
from math import floor
from time import perf_counter
from typing import Final

from cuepost.adapters.guarded_dialler import Blocked, GuardedDialler, PhaseTimings
from cuepost.adapters.http_connection import ConnectionPool, Done, failed
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.http_message import message
from cuepost.ports.transport import CannotResolve, Exchange, Request, Resolver

MOST_IDLE_CONNECTIONS: Final = 256
# Longer than nearly every DNS lookup.
UNUSABLE_SECONDS: Final = 1.0


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

    def start(self, request: Request, done: Done) -> bool:
        url = request.url
        connection = self._pool.take((url.scheme, url.host, url.port))
        if connection is None:
            return False
        request.sent_at = began = perf_counter()
        whole = request.message or message(url, request.headers, request.body)
        connection.begin(whole, began + request.timeout_seconds, done)
        return True

    async def send(self, request: Request) -> Exchange:
        began = request.sent_at or perf_counter()
        if request.url.inbox is not None:
            # Test inboxes are delivered to inside the service; reaching this is a wiring error.
            return Exchange(0.0, Timings(), Outcome.BLOCKED_DESTINATION)
        phases = PhaseTimings(began + request.timeout_seconds)
        try:
            exchange = await self._exchanged(request, phases)
        except (CannotResolve, Blocked) as error:
            why = Unusable.BLOCKED if isinstance(error, Blocked) else Unusable.NOT_RESOLVED
            self._on_unusable(why, request)
            return await self._unusable(began, phases.deadline)
        except OSError as error:
            timed_out = isinstance(error, TimeoutError)
            exchange = failed(Outcome.TIMEOUT if timed_out else Outcome.CONNECT_ERROR, error)
        exchange.duration_ms = (perf_counter() - began) * 1000
        first_byte_ms = exchange.timings.first_byte_ms
        exchange.timings = Timings(phases.dns_ms, phases.connect_ms, phases.tls_ms, first_byte_ms)
        return exchange

    async def _exchanged(self, request: Request, phases: PhaseTimings) -> Exchange:
        url = request.url
        whole = request.message or message(url, request.headers, request.body)
        exchange = None
        # Only one idle connection is tried: a receiver that closes it may have read the request.
        if request.sent_at is None:
            connection = self._pool.take((url.scheme, url.host, url.port))
            if connection is not None:
                exchange = await connection.exchange(whole, phases.deadline)
        if exchange is None:
            connection = await self._dialler.open(url, phases, self._pool)
            exchange = await connection.exchange(whole, phases.deadline)
        assert exchange is not None
        return exchange

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


def tls_context(extra_ca_file: str | None = None) -> ssl.SSLContext:
    """Trusts the system's CAs and the operator's; verification cannot be switched off."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if extra_ca_file:
        context.load_verify_locations(extra_ca_file)
    return context
