"""Sending one request to one receiver; what the network does is a value, never an exception."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from cuepost.domain.attempt import Outcome, Timings, TlsFault
from cuepost.domain.egress_policy import Address
from cuepost.domain.receiver_url import ReceiverUrl

Headers = tuple[tuple[str, str], ...]


# Both are made for every attempt, and a frozen dataclass takes five times as long to make.


@dataclass(slots=True)
class Request:
    """A POST; `timeout_seconds` is for all of it, from the look-up to the head of the answer.

    `message` is how it looks on the wire, where that is known already. `sent_at` is set, as an
    instant of `time.perf_counter`, when a connection turned out to have been closed before it came:
    it is sent once more, over a new connection, and its time runs since then.
    """

    url: ReceiverUrl
    headers: Headers
    body: bytes
    timeout_seconds: float
    message: bytes = field(default=b"", compare=False, repr=False)
    sent_at: float | None = field(default=None, compare=False)


@dataclass(slots=True)
class Exchange:
    """An answer (`status` is set), or the `fault` that kept it from coming.

    Header names are in lower case. `truncated` says that the body went on, or should have;
    `tls_fault` why TLS is at fault, where it is.
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
        """Send it over a connection that is open already; False where there is none.

        Then `done` is called once, by the event loop: with the exchange, or with None where the
        receiver had closed the connection, so that the request has to be sent by `send`.
        """
        ...

    async def send(self, request: Request) -> Exchange:
        """However long it takes to open a connection."""
        ...


class CannotResolve(Exception):
    """The name has no address, or nobody could be asked."""


class NoResolver:
    """Where nobody looks names up."""

    async def addresses(self, host: str) -> Sequence[Address]:
        raise CannotResolve


class Resolver(Protocol):
    async def addresses(self, host: str) -> Sequence[Address]:
        """Every address of that name; CannotResolve when there is none."""
        ...
