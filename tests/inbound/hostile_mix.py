"""Sixty hostile clients at once, of kinds and in moments that a seed decides."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from cuepost.adapters.system_clock import SystemClock
from tests.inbound.guarded_server import Line

CLIENTS = 60
MIB = 1_048_576
GET = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n"
POST = b"POST /v1/milestones HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"
Conduct = Callable[[Line, Random], Awaitable[None]]


async def endless_line(line: Line, chance: Random) -> None:
    await line.say(b"GET /" + b"x" * chance.randrange(2 * MIB))
    await line.rest()


async def endless_header(line: Line, chance: Random) -> None:
    await line.say(b"GET / HTTP/1.1\r\nx-long: " + b"x" * chance.randrange(2 * MIB))
    await line.rest()


async def endless_headers(line: Line, chance: Random) -> None:
    await line.say(b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * chance.randrange(200_000))
    await line.rest()


async def slow_head(line: Line, chance: Random) -> None:
    clock = SystemClock()
    for byte in GET[: chance.randrange(10, len(GET))]:
        await line.say(bytes([byte]))
        await clock.wait(chance.random() / 5)
    await line.rest()


async def slow_body(line: Line, chance: Random) -> None:
    clock = SystemClock()
    await line.say(POST + b"content-length: 100000\r\n\r\n")
    for _ in range(chance.randrange(40)):
        await line.say(b"x")
        await clock.wait(chance.random() / 5)
    await line.rest()


async def endless_body(line: Line, chance: Random) -> None:
    await line.say(POST + b"transfer-encoding: chunked\r\n\r\n")
    for _ in range(chance.randrange(200)):
        await line.say(b"8000\r\n" + b"x" * 0x8000 + b"\r\n")
    await line.rest()


async def silent(line: Line, chance: Random) -> None:
    await line.rest()


async def pipelining(line: Line, chance: Random) -> None:
    await line.say(GET * chance.randrange(1, 3_000))
    if chance.random() < 0.5:
        await line.rest()


async def early_close(line: Line, chance: Random) -> None:
    await line.say((GET * 2)[: chance.randrange(len(GET) * 2)])


async def nonsense(line: Line, chance: Random) -> None:
    await line.say(chance.randbytes(chance.randrange(1, 100_000)))
    await line.rest()


CONDUCTS: tuple[Conduct, ...] = (
    *(endless_line, endless_header, endless_headers, slow_head, slow_body),
    *(endless_body, silent, pipelining, early_close, nonsense),
)


async def mixed_attack(port: int, seed: int) -> None:
    chance = Random(seed)
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(_client(port, chance.choice(CONDUCTS), Random(chance.random())))


async def _client(port: int, conduct: Conduct, chance: Random) -> None:
    await SystemClock().wait(chance.random() * 2)
    line = await Line.open(port)
    try:
        with suppress(ConnectionError):
            await conduct(line, chance)
    finally:
        line.close()
