"""Reports milestones at a steady rate for a given time."""

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

EVENTS_AT_ONCE = 10
CONNECTIONS = 4


class _Result(msgspec.Struct, rename="camel"):
    accepted: bool
    event_id: str | None = None


class _Answer(msgspec.Struct):
    results: list[_Result]


@dataclass(slots=True)
class SteadyFeed:
    """`rate` is in events per second; each request is on schedule, however long others take."""

    port: int
    key: str
    rate: float
    acknowledged: set[str] = field(default_factory=set)
    _sent: int = 0

    async def run(self, projects: Sequence[str], count: int) -> float:
        """The duration in minutes."""
        began, waiting = time.monotonic(), bodies(projects, count)
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(self._one_by_one(waiting, began))
        return (time.monotonic() - began) / 60

    async def _one_by_one(self, waiting: Iterator[bytes], began: float) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        for body in waiting:
            due = began + self._sent * EVENTS_AT_ONCE / self.rate
            self._sent += 1
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            writer.write(self._request(body))
            for result in (await _answer(reader)).results:
                assert result.accepted
                if result.event_id is not None:
                    self.acknowledged.add(result.event_id)
        writer.close()

    def _request(self, body: bytes) -> bytes:
        head = (
            f"POST /v1/milestones HTTP/1.1\r\nhost: soak\r\nauthorization: Bearer {self.key}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


def bodies(projects: Sequence[str], count: int) -> Iterator[bytes]:
    """Each body completes some projects again."""
    for first in range(0, count, EVENTS_AT_ONCE):
        milestones = [
            {
                "reportId": f"soak-{number}-{status}",
                "projectId": projects[number % len(projects)],
                "status": status,
            }
            for number in range(first, min(first + EVENTS_AT_ONCE, count))
            for status in _steps(is_first=number < len(projects))
        ]
        yield json.dumps({"milestones": milestones}).encode()


def _steps(*, is_first: bool) -> tuple[str, ...]:
    """Projects start in the state before their first completion."""
    return ("completed",) if is_first else ("exporting", "completed")


async def _answer(reader: asyncio.StreamReader) -> _Answer:
    head = await reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), head
    place = head.lower().find(b"content-length: ") + 16
    body = await reader.readexactly(int(head[place : head.find(b"\r", place)]))
    return msgspec.json.decode(body, type=_Answer)
