"""A guarded transport for tests: loopback opened as far as the test says, names as it says."""

import asyncio
import ssl
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

from cuepost.adapters.guarded_transport import GuardedTransport, Unusable, tls_context
from cuepost.domain.attempt import Outcome, Timings
from cuepost.domain.egress_policy import Address, EgressPolicy
from cuepost.domain.receiver_url import parse_receiver_url
from cuepost.ports.transport import CannotResolve, Exchange, Headers, Request

ANY_PORT = ((1, 65_535),)
HEADERS = (("content-type", "application/json"), ("webhook-id", "0193e4a0"))
BODY = b'{"id":"0193e4a0"}'
AMPLE_SECONDS = 15.0
# A machine that is busy with other things may be late by so much.
LATE_SECONDS = 1.5

Answers = Sequence[str] | Exception | asyncio.Event


class StubResolver:
    """Every name is 127.0.0.1, unless `answers` has something else for it, one after the other.

    An exception is raised, an event is waited for; the last answer is given again and again.
    """

    def __init__(self) -> None:
        self.answers: dict[str, list[Answers]] = {}
        self.look_ups: Counter[str] = Counter()

    async def addresses(self, host: str) -> Sequence[Address]:
        self.look_ups[host] += 1
        prepared = self.answers.get(host, [["127.0.0.1"]])
        answer = prepared.pop(0) if len(prepared) > 1 else prepared[0]
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, asyncio.Event):
            await answer.wait()
            raise CannotResolve
        return [ip_address(text) for text in answer]


@dataclass(frozen=True, slots=True)
class Sender:
    transport: GuardedTransport
    resolver: StubResolver
    policy: EgressPolicy
    reported: list[Unusable]

    async def post(
        self,
        url: str,
        timeout_seconds: float = AMPLE_SECONDS,
        headers: Headers = HEADERS,
        body: bytes = BODY,
    ) -> Exchange:
        # Read without a policy, so that the transport's own guard is what a test sees at work.
        parsed = parse_receiver_url(url, _ANYTHING_GOES)
        request = Request(parsed, headers, body, timeout_seconds)
        return await self._started(request) or await self.transport.send(request)

    async def _started(self, request: Request) -> Exchange | None:
        """As the engine does it, where there is an open connection."""
        reported: asyncio.Future[Exchange | None] = asyncio.get_running_loop().create_future()

        def done(exchange: Exchange | None) -> None:
            # A test may have cancelled this; the exchange goes on to its end.
            if not reported.cancelled():
                reported.set_result(exchange)

        is_started = self.transport.start(request, done)
        assert not reported.done(), "never from inside of start"
        return await reported if is_started else None

    async def failed(self, url: str, timeout_seconds: float = AMPLE_SECONDS) -> Exchange:
        """Nothing came back, and the reason is told where TLS is at fault, and only there."""
        exchange = await self.post(url, timeout_seconds)
        assert exchange == Exchange(
            exchange.duration_ms, exchange.timings, exchange.fault, tls_fault=exchange.tls_fault
        )
        assert (exchange.tls_fault is not None) == (exchange.fault is Outcome.TLS_ERROR)
        assert exchange.duration_ms < (timeout_seconds + LATE_SECONDS) * 1000
        return exchange

    async def fault(self, url: str, timeout_seconds: float = AMPLE_SECONDS) -> Outcome | None:
        return (await self.failed(url, timeout_seconds)).fault


_ANYTHING_GOES = EgressPolicy((ip_network("0.0.0.0/0"), ip_network("::/0")), ANY_PORT, True)


def loopback_policy(*networks: str) -> EgressPolicy:
    return EgressPolicy(tuple(map(ip_network, networks or ("127.0.0.1/32",))), ANY_PORT, True)


@contextmanager
def sender(
    policy: EgressPolicy | None = None,
    tls: ssl.SSLContext | None = None,
    most_idle: int = 16,
    resolver: StubResolver | None = None,
    unusable_seconds: float = 0.0,
) -> Iterator[Sender]:
    reported: list[Unusable] = []
    policy = policy or loopback_policy()
    resolver = resolver or StubResolver()
    transport = GuardedTransport(
        policy,
        resolver,
        tls or _system_tls(),
        most_idle,
        on_unusable=lambda why, request: reported.append(why),
        unusable_seconds=unusable_seconds,
    )
    try:
        yield Sender(transport, resolver, policy, reported)
    finally:
        transport.close()


@cache
def _system_tls() -> ssl.SSLContext:
    """Reading the system's authorities takes long."""
    return tls_context()


def ended_after(exchange: Exchange, seconds: float) -> bool:
    """And not much later; the loop counts in milliseconds."""
    return seconds - 0.01 <= exchange.duration_ms / 1000 < seconds + LATE_SECONDS


def total_ms(timings: Timings) -> float:
    phases = (timings.dns_ms, timings.connect_ms, timings.tls_ms, timings.first_byte_ms)
    return sum(phase for phase in phases if phase is not None)


def open_sockets() -> int:
    """Those of this process, as the kernel sees them."""
    count = 0
    for link in Path("/proc/self/fd").iterdir():
        try:
            count += link.readlink().name.startswith("socket:")
        except FileNotFoundError:
            continue  # the descriptor of this very listing
    return count


async def settled(*, sockets: int) -> None:
    """Until as many sockets as that are open; closing takes the loop a round or two."""
    async with asyncio.timeout(5):
        while open_sockets() > sockets:
            await asyncio.get_running_loop().run_in_executor(None, int)


class ConnectionRecord:
    """Every destination that a socket of this process was told to connect to."""

    _hooked = False
    _destinations: list[Any] | None = None

    @classmethod
    @contextmanager
    def kept(cls) -> Iterator[list[Any]]:
        # An audit hook cannot be taken away again, nor got around: one for all tests, often idle.
        if not cls._hooked:
            cls._hooked = True
            sys.addaudithook(cls._heard)
        destinations: list[Any] = []
        cls._destinations = destinations
        try:
            yield destinations
        finally:
            cls._destinations = None

    @classmethod
    def _heard(cls, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "socket.connect" and cls._destinations is not None:
            cls._destinations.append(arguments[1])
