"""Sending one request to one receiver; a network failure is a value, never an exception."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cuepost.domain.attempt import Outcome, Timings, TlsFault
from cuepost.domain.egress_policy import Address
from cuepost.domain.receiver_url import ReceiverUrl

Headers = tuple[tuple[str, str], ...]


# Request and Exchange are created for every attempt; creating a frozen dataclass takes five
# times as long.


@dataclass(slots=True)
class Request:
    """A POST; `timeout_seconds` covers everything from the DNS look-up to the response head.

    `message` is the complete request as bytes, if it has been built already. `sent_at` is a time of
    `time.perf_counter`. `start` sets it; if the receiver had closed the connection before the
    request came, `send` then opens a new connection, and the timeout counts from `sent_at`.
    """

    url: ReceiverUrl
    headers: Headers
    body: bytes
    timeout_seconds: float
    message: bytes = field(default=b"", compare=False, repr=False)
    sent_at: float | None = field(default=None, compare=False)


@dataclass(slots=True)
class Exchange:
    """A response (`status` is set), or the `fault` that prevented it.

    Header names are in lower case. `truncated`: the stored body is not complete. `tls_fault` is the
    reason of a TLS fault.
    """

    duration_ms: float
    timings: Timings
    fault: Outcome | None = None
    status: int | None = None
    headers: Headers = ()
    body: bytes = b""
    truncated: bool = False
    tls_fault: TlsFault | None = None


class Transport(Protocol):
    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        """Send the request over an open connection; return False if there is none.

        Otherwise the event loop calls `done` once: with the exchange, or with None if the receiver
        had closed the connection, so that the request has to be sent by `send`.
        """
        ...

    async def send(self, request: Request) -> Exchange:
        """Send the request, opening a connection if necessary."""
        ...


class CannotResolve(Exception):
    """The name has no address, or no name server answered."""


class NoResolver:
    """For a service without DNS: no name can be resolved."""

    async def addresses(self, host: str) -> Sequence[Address]:
        raise CannotResolve


class Resolver(Protocol):
    async def addresses(self, host: str) -> Sequence[Address]:
        """Every address of that name; raises CannotResolve if there is none."""
        ...
