"""Reports milestones to a running service, over a few connections that stay open."""

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec


class _Result(msgspec.Struct, rename="camel"):
    accepted: bool
    event_id: str = ""


class _Answer(msgspec.Struct):
    results: list[_Result]


@dataclass(slots=True)
class Fed:
    """What was acknowledged, and when each request was begun and answered."""

    acknowledged: set[str] = field(default_factory=set)
    began_at: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0


def batches(projects: Sequence[str], size: int) -> list[bytes]:
    """Bodies that complete these projects, so many in each."""
    return [
        msgspec.json.encode(
            {
                "milestones": [
                    {"reportId": f"done-{each}", "projectId": each, "status": "completed"}
                    for each in projects[first : first + size]
                ]
            }
        )
        for first in range(0, len(projects), size)
    ]


async def feed(
    port: str, key: str, bodies: Iterable[bytes], *, connections: int = 4, rate: float | None = None
) -> Fed:
    """As fast as they are answered, or so many requests a second, each at its own time."""
    fed, waiting = Fed(), iter(bodies)
    started = time.monotonic()
    pace = _Pace(started, rate)

    async def one_by_one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        for body in waiting:
            await pace.wait()
            began = time.time()
            writer.write(_request(key, body))
            answer = await _answer(reader)
            for result in answer.results:
                assert result.accepted
                fed.acknowledged.add(result.event_id)
                fed.began_at[result.event_id] = began
        writer.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(one_by_one())
    fed.seconds = time.monotonic() - started
    return fed


@dataclass(slots=True)
class _Pace:
    started: float
    rate: float | None
    taken: int = 0

    async def wait(self) -> None:
        if self.rate is not None:
            due = self.started + self.taken / self.rate
            self.taken += 1
            await asyncio.sleep(max(0.0, due - time.monotonic()))


def _request(key: str, body: bytes) -> bytes:
    return (
        f"POST /v1/milestones HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {key}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    ).encode() + body


async def _answer(reader: asyncio.StreamReader) -> _Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    place = head.lower().find(b"content-length: ") + 16
    body = await reader.readexactly(int(head[place : head.find(b"\r", place)]))
    return msgspec.json.decode(body, type=_Answer)
