"""What a receiver may do with a request, and what the sender has to make of that.

Everything is drawn before it happens, so that the same seed gives the same conduct.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from random import Random

from cuepost.domain.attempt import Outcome
from cuepost.ports.transport import Exchange, Headers
from tests.support.fault_server import Peer, Script

# Let what was sent arrive: a reset overtakes what is still on its way, and may do so even then.
BEFORE_A_RESET_SECONDS = 0.01
OVERTAKEN = frozenset({Outcome.CONNECT_ERROR, Outcome.PROTOCOL_ERROR})
ENDINGS = ("close", "half close", "reset")


@dataclass(frozen=True, slots=True)
class Answer:
    """What the sender has to make of it; where it is not `whole`, any part of the body will do."""

    status: int
    headers: Headers
    body: bytes = b""
    truncated: bool = False
    whole: bool = True

    def is_in(self, exchange: Exchange) -> bool:
        body = self.body if self.whole else self.body[: len(exchange.body)]
        got = (exchange.status, exchange.headers, exchange.body, exchange.truncated)
        return got == (self.status, self.headers, body, self.truncated)


@dataclass(frozen=True, slots=True)
class Conduct:
    """Towards one request. An `early` one comes between head and body of the request, of which a
    `large` one is more than the receiver's side takes without reading.

    A `slow` one ends by the sender's deadline alone. After a `lasting` one the connection serves
    the next request, and when all is quiet `at_rest` may happen to it. A `goodbye` is meant for
    the connection, when it has served before.
    """

    name: str
    act: Script
    answer: Answer | None = None
    faults: frozenset[Outcome] = frozenset()
    early: bool = False
    large: bool = False
    slow: bool = False
    lasting: bool = False
    goodbye: bool = False
    at_rest: Script | None = None

    def explains(self, exchange: Exchange) -> bool:
        if exchange.fault is not None:
            return exchange.fault in self.faults
        return self.answer is not None and self.answer.is_in(exchange)


Draw = Callable[[Random, str], Conduct]


def head_of(status: int, headers: Headers, version: str = "1.1") -> bytes:
    lines = [f"HTTP/{version} {status} Said", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "", ""]).encode()


def pieces(chance: Random, data: bytes) -> list[bytes]:
    """Cut at random places, more often not at all."""
    count = chance.choice((0, 0, 1, 2, 5))
    edges = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(count))})
    return [data[start:end] for start, end in pairwise(edges)]


def text(chance: Random, tag: str, most: int = 1500) -> bytes:
    return (f"{tag} ".encode() * (most // len(tag) + 1))[: chance.randrange(most)]


async def end(peer: Peer, ending: str) -> None:
    if ending == "close":
        await peer.close()
    elif ending == "half close":
        await peer.half_close()
    elif ending == "reset":
        await peer.gone_within(BEFORE_A_RESET_SECONDS)
        peer.reset()


async def say(peer: Peer, sent: Iterable[bytes], ending: str = "") -> None:
    await peer.send_in_pieces(sent)
    await end(peer, ending)
