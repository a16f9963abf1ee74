"""Receivers that answer as they should, each in its own way, and may end the connection after."""

import zlib
from functools import partial
from itertools import pairwise
from random import Random

from cuepost.adapters.answer_reader import MOST_HEADERS, MOST_INTERIM_ANSWERS
from tests.adapters.hostile.conduct import (
    ENDINGS,
    OVERTAKEN,
    Answer,
    Conduct,
    Draw,
    end,
    head_of,
    pieces,
    say,
    text,
)
from tests.support.fault_server import Peer

STATUSES = (200, 200, 201, 202, 299, 400, 404, 410, 429, 500, 503, 999)
REDIRECTS = (300, 301, 302, 303, 307, 308)
INTERIM = (b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n")
REST_SECONDS = 5.0
GZIP = ("transfer-encoding", "gzip")
SMALL_BOMB = zlib.compress(bytes(2_000_000), wbits=31)


def chunked(chance: Random, body: bytes) -> bytes:
    ends = sorted({0, len(body), *(chance.randrange(len(body) + 1) for _ in range(3))})
    chunks = [b"%x%s\r\n%s\r\n" % (b - a, b";a=b" * (a % 2), body[a:b]) for a, b in pairwise(ends)]
    return b"".join(chunks) + chance.choice((b"0\r\n\r\n", b"0\r\nt: x\r\n\r\n"))


def with_length(chance: Random, tag: str) -> tuple[Answer, bytes]:
    body = text(chance, tag)
    headers = (("x-tag", tag), ("content-length", str(len(body))))
    answer = Answer(chance.choice(STATUSES), headers, body)
    return answer, head_of(answer.status, headers) + body


def in_chunks(chance: Random, tag: str) -> tuple[Answer, bytes]:
    headers = (("transfer-encoding", "chunked"), ("x-tag", tag))
    answer = Answer(chance.choice(STATUSES), headers, text(chance, tag))
    return answer, head_of(answer.status, headers) + chunked(chance, answer.body)


def without_body(chance: Random, tag: str) -> tuple[Answer, bytes]:
    """As to a HEAD: a length may be told, but nothing comes."""
    status = chance.choice((204, 304))
    headers = (("x-tag", tag), *chance.choice(((), (("content-length", "5"),))))
    return Answer(status, headers), head_of(status, headers)


def of_old(chance: Random, tag: str) -> tuple[Answer, bytes]:
    headers = (("connection", "keep-alive"), ("x-tag", tag), ("content-length", "2"))
    return Answer(200, headers, b"ok"), head_of(200, headers, "1.0") + b"ok"


def redirect(chance: Random, tag: str) -> tuple[Answer, bytes]:
    place = chance.choice(
        ("http://127.0.0.66/", "//127.0.0.66/", "https://[::1]/", "/elsewhere", "file:///")
    )
    headers = (("location", place), ("x-tag", tag), ("content-length", "0"))
    status = chance.choice(REDIRECTS)
    return Answer(status, headers), head_of(status, headers)


def after_interim_answers(chance: Random, tag: str) -> tuple[Answer, bytes]:
    answer, sent = with_length(chance, tag)
    count = chance.randint(1, MOST_INTERIM_ANSWERS)
    return answer, b"".join(chance.choices(INTERIM, k=count)) + sent


def just_not_too_many_headers(chance: Random, tag: str) -> tuple[Answer, bytes]:
    many = tuple((f"x-{n}", "y") for n in range(MOST_HEADERS - 2))
    headers = (*many, ("x-tag", tag), ("content-length", "0"))
    return Answer(200, headers), head_of(200, headers)


def compressed(chance: Random, tag: str) -> tuple[Answer, bytes]:
    """What it says about itself is not tried out, so that it may as well be wrong."""
    body = chance.choice((SMALL_BOMB, text(chance, tag)))
    headers = (("content-encoding", "gzip"), ("x-tag", tag), ("content-length", str(len(body))))
    return Answer(200, headers, body), head_of(200, headers) + body


COMPLETE = (
    with_length,
    with_length,
    in_chunks,
    in_chunks,
    without_body,
    of_old,
    redirect,
    after_interim_answers,
    just_not_too_many_headers,
    compressed,
)


async def unasked(peer: Peer, sent: bytes) -> None:
    """To a connection that rests: the client has to end it, without being told to."""
    peer.send(sent)
    assert await peer.gone_within(REST_SECONDS), "still there after bytes that no one asked for"


async def closing(peer: Peer) -> None:
    """At the same moment the next request may be written."""
    peer.transport.close()


def friendly(chance: Random, tag: str) -> Conduct:
    kind = chance.choice(COMPLETE)
    answer, sent = kind(chance, tag)
    act = partial(say, sent=pieces(chance, sent))
    surplus = head_of(200, (("x-tag", f"surplus-{tag}"), ("content-length", "0")))
    at_rest = chance.choice(
        (
            *[None] * 12,
            partial(unasked, sent=surplus),
            partial(unasked, sent=chance.choice((b"H", b"\r\n", b"\x00" * 100))),
            closing,
            partial(end, ending="half close"),
            partial(end, ending="reset"),
        )
    )
    return Conduct(kind.__name__, act, answer, lasting=True, at_rest=at_rest)


def friendly_and_last(chance: Random, tag: str) -> Conduct:
    """The connection ends right behind the answer, and that crosses with the next request."""
    kind = chance.choice(COMPLETE)
    answer, sent = kind(chance, tag)
    ending = chance.choice(ENDINGS)
    name = f"{kind.__name__}, {ending}"
    if ending == "reset":
        # In one piece, so that all of it is there or nothing.
        return Conduct(name, partial(say, sent=[sent], ending=ending), answer, OVERTAKEN)
    return Conduct(name, partial(say, sent=pieces(chance, sent), ending=ending), answer)


def until_the_end(chance: Random, tag: str) -> Conduct:
    """A body that has no other end than that of the connection, which must not be a reset."""
    version, coding = chance.choice((("1.0", ()), ("1.1", ()), ("1.1", (GZIP,))))
    headers = (*coding, ("x-tag", tag))
    body = text(chance, tag)
    sent = head_of(200, headers, version) + body
    ending = chance.choice(ENDINGS)
    if ending == "reset":
        answer = Answer(200, headers, body, truncated=True, whole=False)
        act = partial(say, sent=[sent], ending=ending)
        return Conduct("until reset", act, answer, OVERTAKEN)
    act = partial(say, sent=pieces(chance, sent), ending=ending)
    return Conduct(f"until {ending}", act, Answer(200, headers, body))


FRIENDLY: tuple[Draw, ...] = (friendly,) * 6 + (friendly_and_last, until_the_end)
