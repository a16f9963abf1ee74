"""A head has a longest line, a largest number of headers and of their bytes; so have trailers."""

import pytest

from cuepost.bootstrap.guarded_protocol import GuardedProtocol
from cuepost.bootstrap.inbound_guard import InboundLimits, Refusal
from tests.inbound.guarded_server import Line, asked, guarded_server, status_in

LIMITS = InboundLimits(request_line=1_000, header_count=20, header_bytes=2_000)
CLOSE = b"connection: close\r\n"
PIECE = b"x" * 65_536
MIB = 1_048_576


def get(target: bytes, headers: bytes = b"") -> bytes:
    return b"GET " + target + b" HTTP/1.1\r\n" + CLOSE + headers + b"\r\n"


@pytest.mark.parametrize(
    ("request_bytes", "status", "reason"),
    [
        (get(b"/" + b"a" * 999), 200, None),
        (get(b"/" + b"a" * 1_000), 414, Refusal.REQUEST_LINE),
        (get(b"/", b"a: b\r\n" * 19), 200, None),
        (get(b"/", b"a: b\r\n" * 20), 431, Refusal.HEADER_COUNT),
        (get(b"/", b"a: " + b"b" * (2_000 - 1 - 15) + b"\r\n"), 200, None),
        (get(b"/", b"a: " + b"b" * (2_001 - 1 - 15) + b"\r\n"), 431, Refusal.HEADER_BYTES),
        (b"NONSENSE\r\n\r\n", 400, Refusal.MALFORMED),
        (b"GET / HTTP/1.1\r\na b: c\r\n\r\n", 400, Refusal.MALFORMED),
    ],
    ids=["line fits", "line", "count fits", "count", "bytes fit", "bytes", "nonsense", "bad name"],
)
async def test_a_head_is_refused_from_its_limit_on(
    request_bytes: bytes, status: int, reason: Refusal | None
) -> None:
    async with guarded_server(LIMITS) as server:
        assert await asked(server.port, request_bytes) == status
        assert server.refusals == ({reason: 1} if reason else {})


CHUNKED = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("beginning", "endless", "status", "reason"),
    [
        (b"GET /", PIECE, 414, Refusal.REQUEST_LINE),
        (b"", b"\r\n" * 32_768, 414, Refusal.REQUEST_LINE),
        (b"GET / HTTP/1.1\r\na: ", PIECE, 431, Refusal.HEADER_BYTES),
        (b"GET / HTTP/1.1\r\n", PIECE, 431, Refusal.HEADER_BYTES),
        (b"GET / HTTP/1.1\r\n", b"a: b\r\n" * 10_000, 431, Refusal.HEADER_COUNT),
        (CHUNKED + b"1\r\na\r\n0\r\n", b"a: b\r\n" * 10_000, 431, Refusal.HEADER_COUNT),
        (CHUNKED + b"1\r\na\r\n0\r\na: ", PIECE, 431, Refusal.HEADER_BYTES),
        (CHUNKED + b"1;", PIECE, 431, Refusal.HEADER_BYTES),
    ],
    ids=[
        *("line", "empty lines", "one value", "one name", "headers"),
        *("trailers", "one trailer", "chunk extension"),
    ],
)
async def test_what_never_ends_is_refused_before_128_kib_were_taken(
    beginning: bytes, endless: bytes, status: int, reason: Refusal, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[int] = []
    take = GuardedProtocol.buffer_updated

    def count(self: GuardedProtocol, nbytes: int) -> None:
        taken.append(nbytes)
        take(self, nbytes)

    monkeypatch.setattr(GuardedProtocol, "buffer_updated", count)
    async with guarded_server() as server:
        line = await Line.open(server.port)
        await line.say(beginning)
        assert await flood(line, endless) < 32 * MIB
        assert status_in(await line.rest()) == status
        assert server.refusals == {reason: 1}
        assert sum(taken) < 128 * 1_024
        line.close()


async def flood(line: Line, piece: bytes) -> int:
    """32 MiB, or as much as the other side lets through."""
    sent = 0
    try:
        while sent < 32 * MIB:
            await line.say(piece)
            sent += len(piece)
    except ConnectionError:
        pass
    return sent


async def test_a_refused_head_costs_others_nothing() -> None:
    async with guarded_server(LIMITS) as server:
        friend = await Line.open(server.port)
        for _ in range(3):
            assert await asked(server.port, get(b"/" + b"a" * 1_000)) == 414
            await friend.say(b"GET /friend HTTP/1.1\r\n\r\n")
            assert await friend.status() == 200
        friend.close()
        assert [path for path, _, _ in server.seen] == ["/friend"] * 3


async def test_many_small_pipelined_requests_are_answered_and_too_many_end_the_connection() -> None:
    async with guarded_server() as server:
        line = await Line.open(server.port)
        await line.say(b"GET / HTTP/1.1\r\n\r\n" * 33)
        for _ in range(33):
            assert await line.status() == 200
        assert server.refusals == {}

        await line.say(b"GET / HTTP/1.1\r\n\r\n" * 3_000)
        await line.rest()
        assert server.refusals == {Refusal.PIPELINE: 1}
        line.close()


async def test_a_request_that_wants_another_protocol_is_answered_as_any_other() -> None:
    async with guarded_server() as server:
        line = await Line.open(server.port)
        await line.say(b"GET / HTTP/1.1\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n")
        assert await line.status() == 200
        line.close()
        assert server.refusals == {}
