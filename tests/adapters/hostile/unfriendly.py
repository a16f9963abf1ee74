"""Receivers that break off, hang, flood, or answer with something that is no answer."""

import zlib
from functools import partial
from random import Random

from cuepost.adapters.answer_reader import BODY_KEPT, MOST_HEADERS, MOST_INTERIM_ANSWERS
from cuepost.domain.attempt import Outcome
from cuepost.ports.transport import Headers
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
from tests.adapters.hostile.friendly import COMPLETE, INTERIM
from tests.support.fault_server import OK, Peer

HEAD = b"HTTP/1.1 200 OK\r\n"
NOT_HTTP = (
    b"hello\r\n\r\n",
    b"SSH-2.0-OpenSSH_9.6\r\n",
    b"220 mail.example ESMTP\r\n",
    b"RTSP/1.0 200 OK\r\n\r\n",
    b"ICY 200 OK\r\n\r\n",
    b"HTTP/1.1 20 OK\r\n\r\n",
    b"HTTP/1.1 099 Odd\r\ncontent-length: 0\r\n\r\n" + OK,
    b"HTTP/1.1 OK\r\n\r\n",
    b"HTTP/1.1 200 OK\n\n",
    HEAD + b"a b: c\r\n\r\n",
    HEAD + b"a: b\r\n c\r\n\r\n",
    HEAD + b"a: \x00\r\n\r\n",
    HEAD + b"content-length: -1\r\n\r\n",
    HEAD + b"content-length: 99999999999999999999\r\n\r\n",
    HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\nx",
    HEAD + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
    b"HTTP/1.1 101 Switching\r\n\r\n" + OK,
    b"HTTP/1.1 101 Switching\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n" + OK,
    b"HTTP/1.1 110 Odd\r\ncontent-length: 2\r\n\r\nok" + OK,
    bytes(100),
    b"\xff\xfe" * 100,
)
BAD_CHUNKS = (b"zz\r\nhello", b"5\r\nhelloX", b"ffffffffffffffffff\r\nhello", b"-1\r\nhello")
BOMB = zlib.compress(bytes(20_000_000), wbits=31)
FILLER = b"x" * 65_536
DRIP_SECONDS = 0.02
UNREAD_SECONDS = 0.03
_CONNECT = frozenset({Outcome.CONNECT_ERROR})
_PROTOCOL = frozenset({Outcome.PROTOCOL_ERROR})
_TIMEOUT = frozenset({Outcome.TIMEOUT})
CHUNKED = ("transfer-encoding", "chunked")


def ends_instead(chance: Random, tag: str) -> Conduct:
    ending = chance.choice(ENDINGS)
    return Conduct(f"{ending} instead", partial(end, ending=ending), None, _CONNECT)


def ends_within_the_request(chance: Random, tag: str) -> Conduct:
    ending = chance.choice(("close", "reset"))
    act = partial(end, ending=ending)
    return Conduct(f"{ending} within the request", act, None, _CONNECT, early=True)


def ends_within_the_head(chance: Random, tag: str) -> Conduct:
    _, sent = chance.choice(COMPLETE)(chance, tag)
    # The last byte of the head is never among them.
    part = sent[: chance.randrange(1, sent.index(b"\r\n\r\n") + 4)]
    ending = chance.choice(ENDINGS)
    faults = OVERTAKEN if ending == "reset" else _PROTOCOL
    act = partial(say, sent=pieces(chance, part), ending=ending)
    return Conduct(f"{ending} within the head", act, None, faults)


def ends_within_the_body(chance: Random, tag: str) -> Conduct:
    body = text(chance, tag)
    ending = chance.choice(ENDINGS)
    if chance.random() < 0.5:
        headers: Headers = (("x-tag", tag), ("content-length", str(len(body) + 1)))
        sent = head_of(200, headers) + body
    else:
        headers = (CHUNKED, ("x-tag", tag))
        sent = head_of(200, headers) + b"ffff\r\n" + body
    if ending == "reset":
        answer = Answer(200, headers, body, truncated=True, whole=False)
        return Conduct(
            "reset within the body", partial(say, sent=[sent], ending=ending), answer, OVERTAKEN
        )
    answer = Answer(200, headers, body, truncated=True)
    act = partial(say, sent=pieces(chance, sent), ending=ending)
    return Conduct(f"{ending} within the body", act, answer)


def garbage(chance: Random, tag: str) -> Conduct:
    noise = (chance.randbytes(chance.randrange(1, 200)) for _ in iter(int, 1))
    sent = chance.choice((*NOT_HTTP, next(data for data in noise if data[0] not in b"H\r\n")))
    act = partial(say, sent=pieces(chance, sent), ending="close")
    return Conduct("garbage", act, None, _PROTOCOL)


def bad_chunks(chance: Random, tag: str) -> Conduct:
    headers = (CHUNKED, ("x-tag", tag))
    sent = head_of(200, headers) + chance.choice(BAD_CHUNKS)
    answer = Answer(200, headers, b"hello", truncated=True, whole=False)
    return Conduct("bad chunks", partial(say, sent=pieces(chance, sent), ending="close"), answer)


def too_much_head(chance: Random, tag: str) -> Conduct:
    """And its end never comes, or far too late."""
    sent = chance.choice(
        (
            b"".join(chance.choices(INTERIM, k=MOST_INTERIM_ANSWERS + 1)) + OK,
            HEAD + b"".join(b"x-%d: y\r\n" % n for n in range(MOST_HEADERS + 1)) + b"\r\n",
            HEAD + b"x-giant: " + b"y" * 100_000 + b"\r\n\r\n",
            HEAD + b"content-encoding: gzip\r\n" * 5000,
        )
    )
    return Conduct("too much head", partial(say, sent=pieces(chance, sent)), None, _PROTOCOL)


def endless_head(chance: Random, tag: str) -> Conduct:
    endless = chance.choice((INTERIM[1], b"x-a: b\r\n", b"a:\r\n", b"x" * 1000))
    start = b"" if endless.startswith(b"HTTP") else HEAD

    async def act(peer: Peer) -> None:
        peer.send(start + endless)
        await peer.send_endlessly(endless * (16_384 // len(endless)))

    return Conduct(f"endless {endless[:8]!r}", act, None, _PROTOCOL)


def endless_body(chance: Random, tag: str) -> Conduct:
    headers, start = chance.choice(
        (
            ((("content-length", "10000000000"),), b""),
            ((CHUNKED,), b"fffffff\r\n"),
            ((), b""),
        )
    )
    headers = (*headers, ("x-tag", tag))
    answer = Answer(200, headers, FILLER[:BODY_KEPT], truncated=True)

    async def act(peer: Peer) -> None:
        peer.send(head_of(200, headers) + start)
        await peer.send_endlessly(FILLER)

    return Conduct("endless body", act, answer)


def bomb(chance: Random, tag: str) -> Conduct:
    headers = (("content-encoding", "gzip"), ("x-tag", tag), ("content-length", str(len(BOMB))))
    answer = Answer(200, headers, BOMB[:BODY_KEPT], truncated=True)
    act = partial(say, sent=pieces(chance, head_of(200, headers) + BOMB))
    return Conduct("bomb", act, answer)


def two_answers(chance: Random, tag: str) -> Conduct:
    answer, sent = chance.choice(COMPLETE)(chance, tag)
    _, second = chance.choice(COMPLETE)(chance, f"surplus-{tag}")
    surplus = chance.choice((second, second[:1], b"and more"))
    return Conduct("two answers", partial(say, sent=[sent + surplus]), answer)


def early_answer(chance: Random, tag: str) -> Conduct:
    answer, sent = chance.choice(COMPLETE)(chance, tag)
    act = partial(say, sent=pieces(chance, sent))
    return Conduct("early answer", act, answer, early=True, lasting=True)


def early_answer_and_end(chance: Random, tag: str) -> Conduct:
    """What was not read makes a reset of every end."""
    answer, sent = chance.choice(COMPLETE)(chance, tag)
    ending = chance.choice(("close", "reset"))
    act = partial(say, sent=[sent], ending=ending)
    return Conduct(f"early answer, {ending}", act, answer, OVERTAKEN, early=True)


def early_answer_and_no_reading(chance: Random, tag: str) -> Conduct:
    """The rest of the request stands in the way of the next, so the client has to end this."""
    answer, sent = chance.choice(COMPLETE)(chance, tag)

    async def act(peer: Peer) -> None:
        peer.transport.pause_reading()
        peer.send(sent)
        await peer.gone_within(UNREAD_SECONDS)
        # Without this it would not be seen that the client has gone.
        peer.transport.resume_reading()

    return Conduct("early answer, no reading", act, answer, early=True, large=True)


def goodbye(chance: Random, tag: str) -> Conduct:
    headers = (("connection", "close"), ("x-tag", tag), ("content-length", "0"))
    act = partial(say, sent=[head_of(408, headers)], ending="close")
    return Conduct("goodbye", act, Answer(408, headers), goodbye=True)


def silent(chance: Random, tag: str) -> Conduct:
    early = chance.random() < 0.5
    return Conduct("silence", Peer.wait_until_gone, None, _TIMEOUT, early=early, slow=True)


def dripped_head(chance: Random, tag: str) -> Conduct:
    dripped = chance.choice((HEAD + b"x-a: b\r\n" * 100, INTERIM[0], b"\r\n"))
    act = partial(Peer.drip, data=dripped, seconds=DRIP_SECONDS)
    return Conduct("dripped head", act, None, _TIMEOUT, slow=True)


def dripped_body(chance: Random, tag: str) -> Conduct:
    headers, start = chance.choice(
        (
            ((("content-length", "1000"),), b""),
            ((), b""),
            ((CHUNKED,), b"3e8\r\n"),
            ((CHUNKED,), b"1;ext="),
            ((CHUNKED,), b"0\r\ntrailer: "),
        )
    )
    headers = (*headers, ("x-tag", tag))
    answer = Answer(200, headers, FILLER, truncated=True, whole=False)
    stalls = chance.random() < 0.3

    async def act(peer: Peer) -> None:
        peer.send(head_of(200, headers) + start)
        if not stalls:
            await peer.drip(b"x", DRIP_SECONDS)

    return Conduct("stalled body" if stalls else "dripped body", act, answer, _TIMEOUT, slow=True)


QUICK: tuple[Draw, ...] = (
    ends_instead,
    ends_within_the_request,
    ends_within_the_head,
    ends_within_the_body,
    garbage,
    bad_chunks,
    too_much_head,
    endless_head,
    endless_body,
    bomb,
    two_answers,
    early_answer,
    early_answer_and_end,
    goodbye,
)
SLOW: tuple[Draw, ...] = (silent, dripped_head, dripped_body)
