"""Limits on clients: how much they send, how slowly, and on how many connections.

The guard tracks all connections of a listener for `guarded_protocol.py`.
"""

import asyncio
import logging
import resource
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from prometheus_client import CollectorRegistry, Gauge

from cuepost.adapters.telemetry import Tally
from cuepost.domain.client_address import counted_address, is_trusted
from cuepost.domain.egress_policy import Network

SWEEP_SECONDS = 1.0

logger = logging.getLogger("cuepost.inbound")


class Refusal(StrEnum):
    """Why the guard has ended a connection."""

    REQUEST_LINE = "request_line"
    HEADER_BYTES = "header_bytes"
    HEADER_COUNT = "header_count"
    MALFORMED = "malformed"
    PIPELINE = "pipeline"
    UNREAD_BODY = "unread_body"
    HEAD_TIMEOUT = "head_timeout"
    BODY_TIMEOUT = "body_timeout"
    ANSWER_TIMEOUT = "answer_timeout"
    CLIENT_CONNECTIONS = "client_connections"
    ALL_CONNECTIONS = "all_connections"
    DISPLACED = "displaced"


@dataclass(frozen=True, slots=True)
class InboundLimits:
    request_line: int = 8_192
    header_count: int = 100
    header_bytes: int = 32_768
    head_seconds: float = 10.0
    body_seconds: float = 15.0
    answer_seconds: float = 30.0
    idle_seconds: float = 5.0
    client_connections: int = 512
    connections: int = 4_096
    trusted_proxies: Sequence[Network] = ()

    @property
    def most_connections(self) -> int:
        """At most half of the file descriptors; deliveries and the store need the others."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return min(self.connections, soft // 2)


class Connection(Protocol):
    """A connection for the guard; `deadline` is a time of the event loop."""

    peer: str
    deadline: float

    def expire(self) -> None: ...
    def displace(self) -> None: ...
    def check_answer(self, now: float) -> None: ...


Waiting = OrderedDict[Connection, None]


@dataclass(slots=True)
class _Client:
    open: int = 0
    waiting: Waiting = field(default_factory=OrderedDict)


class InboundMetrics:
    """The metrics of all listeners of a process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.guards: list[InboundGuard] = []
        self.refused = Tally(
            "cuepost_connections_refused",
            "Connections that were ended because of what their client did.",
            "reason",
            list(Refusal),
            registry,
        )
        Gauge(
            "cuepost_connections_open", "Connections of clients.", registry=registry
        ).set_function(lambda: sum(guard.open_connections for guard in self.guards))


class InboundGuard:
    """A connection is *waiting* while the service waits for a request or the rest of one.

    At a limit, the connection that has waited longest is closed for a new one. So idle connections
    never keep other clients out; only connections with a request in progress use up the limits.
    """

    def __init__(self, limits: InboundLimits, metrics: InboundMetrics) -> None:
        self.limits = limits
        self._most = limits.most_connections
        self._clients: dict[str, _Client] = {}
        self._open: dict[Connection, _Client] = {}
        self._waiting: Waiting = OrderedDict()
        self._blocked: set[Connection] = set()
        self._is_sweeping = False
        self._unlogged: dict[Refusal, tuple[int, str]] = {}
        self._refused = metrics.refused
        metrics.guards.append(self)

    @property
    def open_connections(self) -> int:
        return len(self._open)

    def admit(self, connection: Connection) -> Refusal | None:
        """Count a new connection, or return why it is refused."""
        proxied = is_trusted(connection.peer, self.limits.trusted_proxies)
        key = counted_address(connection.peer)
        client = self._clients.get(key) or _Client()
        is_full = not proxied and client.open >= self.limits.client_connections
        if is_full and not _make_room(client.waiting):
            return Refusal.CLIENT_CONNECTIONS
        if len(self._open) >= self._most and not _make_room(self._waiting):
            return Refusal.ALL_CONNECTIONS
        client.open += 1
        self._clients[key] = client
        self._open[connection] = client
        self._sweep_later()
        return None

    def leave(self, connection: Connection) -> None:
        """Stop counting the connection; a second call does nothing."""
        client = self._open.pop(connection, None)
        if client is None:
            return
        self.works(connection, client)
        client.open -= 1
        if not client.open:
            self._clients.pop(counted_address(connection.peer), None)

    def waits(self, connection: Connection) -> None:
        """The connection waits for its client from now on."""
        client = self._open.get(connection)
        if client is not None:
            for waiting in (self._waiting, client.waiting):
                waiting[connection] = None
                waiting.move_to_end(connection)

    def works(self, connection: Connection, client: _Client | None = None) -> None:
        """The connection has a complete request, which is being processed."""
        client = client or self._open.get(connection)
        if client is not None:
            self._waiting.pop(connection, None)
            client.waiting.pop(connection, None)

    def blocks(self, connection: Connection) -> None:
        """The client has to read what was sent before more can be written; `flows` ends that."""
        self._blocked.add(connection)
        self._sweep_later()

    def flows(self, connection: Connection) -> None:
        self._blocked.discard(connection)

    def refused(self, reason: Refusal, peer: str) -> None:
        self._refused.of[reason] += 1
        count, _ = self._unlogged.get(reason, (0, ""))
        self._unlogged[reason] = (count + 1, peer)
        self._sweep_later()

    def _sweep_later(self) -> None:
        if not self._is_sweeping:
            self._is_sweeping = True
            asyncio.get_running_loop().call_later(SWEEP_SECONDS, self._sweep)

    def _sweep(self) -> None:
        """One timer for all connections, because one for each would slow down every request."""
        self._is_sweeping = False
        now = asyncio.get_running_loop().time()
        for connection in [each for each in self._waiting if each.deadline <= now]:
            connection.expire()
        for connection in list(self._blocked):
            connection.check_answer(now)
        self._log_refusals()
        if self._open or self._blocked:
            self._sweep_later()

    def _log_refusals(self) -> None:
        """Log at most one line per second and reason, whatever clients do."""
        for reason, (count, peer) in self._unlogged.items():
            logger.info(
                "event=connections_refused reason=%s count=%d last_client=%s", reason, count, peer
            )
        self._unlogged.clear()


def _make_room(waiting: Waiting) -> bool:
    if not waiting:
        return False
    next(iter(waiting)).displace()
    return True
