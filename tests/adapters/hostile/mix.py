"""A mix: several requests through one transport, to receivers that were drawn for them by chance.

What comes of a request is judged by what really happened to it: whether its name was looked up,
on which connections it arrived, and how it was received there.
"""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from random import Random

from cuepost.adapters.http_connection import HttpConnection
from cuepost.domain.attempt import Outcome
from cuepost.domain.egress_policy import Address
from cuepost.ports.transport import Exchange
from tests.adapters.hostile.conduct import Conduct
from tests.adapters.hostile.friendly import FRIENDLY
from tests.adapters.hostile.hostile_network import DENIED, Way, fine_way, quick_way, slow_way
from tests.adapters.hostile.unfriendly import QUICK, SLOW, early_answer_and_no_reading
from tests.adapters.sender import AMPLE_SECONDS, Sender, StubResolver
from tests.support.fault_server import Peer, PeerGone, ReceivedRequest

# Nothing is timed here: an attempt that has not ended by then waits without end.
FAR_ABOVE_SECONDS = 10.0
LARGE = 8_000_000
LITERALS = (DENIED, "10.0.0.1", "[::1]", f"[::ffff:{DENIED}]", "[::ffff:127.0.1.1]")


@dataclass(slots=True)
class Arrival:
    """A request on a connection, of which it was the `nth`; early answers leave its body unread."""

    nth: int
    conduct: Conduct
    request: ReceivedRequest | None = None


@dataclass(slots=True)
class ScriptedRequest:
    """One request: what was drawn for it, and what happened."""

    tag: str
    receiver: tuple[str, str]
    way: Way
    # For its first arrival, and for that on the connection which replaces one that was over.
    conducts: tuple[Conduct, Conduct]
    body: bytes
    seconds: float
    cancelled_after: float | None = None
    look_ups: int = 0
    arrivals: list[Arrival] = field(default_factory=list)
    exchange: Exchange | None = None

    def drawn(self) -> tuple[object, ...]:
        """All that follows from the seed."""
        conducts = [(conduct.name, conduct.answer) for conduct in self.conducts]
        way = (self.way.name, self.seconds, self.cancelled_after)
        return (self.tag, self.receiver, *way, conducts, self.body)

    def arrived(self, nth: int) -> Arrival:
        assert len(self.arrivals) < len(self.conducts), f"{self} came once more"
        arrival = Arrival(nth, self.conducts[len(self.arrivals)])
        self.arrivals.append(arrival)
        return arrival

    def request(self, port: int) -> ReceivedRequest:
        """What the receiver has to see, to the byte."""
        headers = (("host", f"{self.receiver[1]}:{port}"), *self.headers)
        length = ("content-length", str(len(self.body)))
        return ReceivedRequest(f"POST /{self.tag} HTTP/1.1", (*headers, length), self.body)

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        return (("content-type", "application/json"), ("webhook-id", self.tag))

    def __str__(self) -> str:
        conducts = [f"{each.nth}: {each.conduct.name}" for each in self.arrivals]
        return (
            f"{self.tag} to {self.receiver[0]}://{self.receiver[1]}, {self.look_ups} look-ups"
            f" ({self.way.name}), arrived {conducts}, {self.seconds:.2f} s,"
            f" cancelled after {self.cancelled_after}: {summary(self.exchange)}"
        )


def body_for(chance: Random, tag: str, conducts: tuple[Conduct, Conduct]) -> bytes:
    if conducts[0].large:
        return tag.encode() * (LARGE // len(tag))
    early = any(conduct.early for conduct in conducts)
    return tag.encode() * chance.randrange(20_000 if early else 100)


def summary(exchange: Exchange | None) -> str:
    if exchange is None:
        return "no end"
    tags = [value for name, value in exchange.headers if name == "x-tag"]
    return (
        f"{exchange.fault or exchange.status} {exchange.tls_fault or ''} tagged {tags},"
        f" {len(exchange.headers)} headers, body of {len(exchange.body)}"
        f" ({exchange.body[:20]!r}), truncated {exchange.truncated}"
    )


CURRENT: ContextVar[ScriptedRequest] = ContextVar("CURRENT")
MIX: ContextVar["Mix"] = ContextVar("MIX")


class DrawnResolver(StubResolver):
    """Says to each request what was drawn for it."""

    async def addresses(self, host: str) -> Sequence[Address]:
        scripted_request = CURRENT.get()
        assert host == scripted_request.receiver[1]
        scripted_request.look_ups += 1
        self.answers[host] = [scripted_request.way.answers]
        return await super().addresses(host)


class Mix:
    """Rounds of lanes; the lanes of a round run at once, the requests in each one by one."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.connections: list[HttpConnection] = []
        self.troubles: list[str] = []
        self._resting: list[tuple[Peer, Conduct]] = []
        self._ended: set[Peer] = set()
        chance = Random(seed)
        self.most_idle = chance.choice((0, 1, 2, 16, 16, 16))
        self._receivers = [
            (chance.choice(("http", "http", "https")), f"m{seed}-{n}.receiver.example")
            for n in range(chance.choice((1, 1, 2, 3)))
        ]
        numbers = iter(range(1000))
        self._rounds = [
            [
                [self._drawn(chance, next(numbers)) for _ in range(chance.randint(1, 3))]
                for _ in range(chance.randint(1, 3))
            ]
            for _ in range(chance.randint(1, 3))
        ]

    def scripted_requests(self) -> Iterator[ScriptedRequest]:
        for lanes in self._rounds:
            for lane in lanes:
                yield from lane

    def _drawn(self, chance: Random, number: int) -> ScriptedRequest:
        tag = f"m{self.seed}-r{number}"
        receiver = chance.choice(self._receivers)
        slow = chance.random() < 0.1
        way = fine_way(chance, receiver[0])
        if chance.random() < 0.25:
            way = (slow_way if slow else quick_way)(chance, receiver[0])
        kinds = chance.choice((FRIENDLY, FRIENDLY, FRIENDLY, QUICK))
        if slow and not way.slow:
            kinds = SLOW
        first, second = (chance.choice(kinds)(chance, f"{tag}.{n}") for n in range(2))
        if chance.random() < 0.01 and not slow:
            first = early_answer_and_no_reading(chance, f"{tag}.0")
        if chance.random() < 0.03:
            receiver = (receiver[0], chance.choice(LITERALS))
        seconds = chance.uniform(0.15, 0.3) if slow else AMPLE_SECONDS
        cancelled = chance.uniform(0, 0.01) if chance.random() < 0.04 else None
        body = body_for(chance, tag, (first, second))
        return ScriptedRequest(tag, receiver, way, (first, second), body, seconds, cancelled)

    async def run(self, client: Sender, port: int) -> None:
        MIX.set(self)
        for lanes in self._rounds:
            async with asyncio.TaskGroup() as group:
                for lane in lanes:
                    group.create_task(self._one_by_one(client, port, lane))
            await self._rest()

    async def _one_by_one(self, client: Sender, port: int, lane: list[ScriptedRequest]) -> None:
        for scripted_request in lane:
            CURRENT.set(scripted_request)
            url = "{}://{}:{}/{}".format(*scripted_request.receiver, port, scripted_request.tag)
            async with asyncio.timeout(scripted_request.seconds + FAR_ABOVE_SECONDS):
                with suppress(TimeoutError):
                    async with asyncio.timeout(scripted_request.cancelled_after):
                        scripted_request.exchange = await client.post(
                            url,
                            scripted_request.seconds,
                            scripted_request.headers,
                            scripted_request.body,
                        )

    def may_rest(self, peer: Peer, conduct: Conduct) -> None:
        self._resting.append((peer, conduct))

    def end(self, peer: Peer) -> None:
        self._ended.add(peer)

    def has_ended(self, peer: Peer) -> bool:
        """A request that crosses with the end was never received."""
        return peer in self._ended

    async def _rest(self) -> None:
        """Nothing is under way now, so what a receiver says is an answer to no one."""
        resting, self._resting = self._resting, []
        for peer, conduct in resting:
            if conduct.at_rest is not None and peer not in self._ended:
                self.end(peer)
                with suppress(PeerGone):
                    await conduct.at_rest(peer)

    def complaints(self, port: int) -> list[str]:
        return [
            f"{complaint}: {scripted_request}"
            for scripted_request in self.scripted_requests()
            for complaint in complaints_of(scripted_request, port)
        ]


def complaints_of(scripted_request: ScriptedRequest, port: int) -> Iterator[str]:
    if any(
        each.request not in (None, scripted_request.request(port))
        for each in scripted_request.arrivals
    ):
        yield "the receiver saw another request"
    fresh = [each for each in scripted_request.arrivals if each.nth == 0]
    used = [each for each in scripted_request.arrivals if each.nth > 0]
    if (
        max(scripted_request.look_ups, len(fresh), len(used)) > 1
        or len(fresh) > scripted_request.look_ups
    ):
        yield "more connections than one that had rested and one that replaces it"
    exchange = scripted_request.exchange
    if exchange is None:
        if scripted_request.cancelled_after is None:
            yield "no end"
    elif not (
        is_right(scripted_request, exchange, fresh, used) or is_late(scripted_request, exchange)
    ):
        yield "not what it has to come to"
    elif (exchange.fault is Outcome.TLS_ERROR) != (exchange.tls_fault is not None):
        yield "TLS is at fault without a reason, or the other way about"


def is_right(
    scripted_request: ScriptedRequest,
    exchange: Exchange,
    fresh: Sequence[Arrival],
    used: Sequence[Arrival],
) -> bool:
    if scripted_request.receiver[1] in LITERALS:
        return exchange.fault is Outcome.BLOCKED_DESTINATION and not scripted_request.arrivals
    if not scripted_request.look_ups:
        # Whatever ends without a byte is followed by a look-up for the connection in its place.
        stayed = len(used) == 1 and not used[0].conduct.goodbye
        return stayed and used[0].conduct.explains(exchange) and not never_began(exchange)
    if used and not may_be_replaced(used[0]):
        return False
    if scripted_request.way.fault is not None:
        failed = (exchange.fault, exchange.tls_fault) == (
            scripted_request.way.fault,
            scripted_request.way.tls_fault,
        )
        return failed and not fresh
    return len(fresh) == 1 and fresh[0].conduct.explains(exchange)


def is_late(scripted_request: ScriptedRequest, exchange: Exchange) -> bool:
    """Where the deadline is short, anything may take longer on a busy machine."""
    if scripted_request.seconds == AMPLE_SECONDS:
        return False
    answers = [
        each.conduct.answer for each in scripted_request.arrivals[-1:] if each.conduct.answer
    ]
    cut = [replace(answer, truncated=True, whole=False) for answer in answers]
    return exchange.fault is Outcome.TIMEOUT or any(answer.is_in(exchange) for answer in cut)


def never_began(exchange: Exchange) -> bool:
    return exchange.fault is Outcome.CONNECT_ERROR


def may_be_replaced(arrival: Arrival) -> bool:
    return arrival.conduct.goodbye or Outcome.CONNECT_ERROR in arrival.conduct.faults
