"""A load generator in a separate process: sends prepared requests.

It sends opaque requests as fast as answers arrive, with a fixed number in flight on each
connection, or at a fixed rate: each request on schedule, whether earlier ones were answered or not,
evenly spaced or at random. A request answered with 429 or 503 is repeated after Retry-After.
"""

import asyncio
import gc
import random
import resource
import sys
import time
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import cast

import msgspec
import uvloop

HOST = "127.0.0.1"
LONGEST_PAUSE_SECONDS = 1.0
TRY_AGAIN = (b"429", b"503")


class Job(msgspec.Struct):
    """`rate` is in requests per second, 0 for as fast as they are answered.

    With `by_chance`, they arrive at random, as those of many independent callers.
    """

    port: int
    requests: list[bytes]
    connections: int
    at_once: int = 1
    rate: float = 0.0
    by_chance: bool = False


class Answered(msgspec.Struct, array_like=True):
    """The index of a request, when it began and was answered, and the answer's body."""

    place: int
    began: float
    answered: float
    body: bytes


class Done(msgspec.Struct):
    answers: list[Answered]
    refused: int
    cpu: float


class Connection(asyncio.Protocol):
    """One connection; answers arrive in the order of the requests."""

    def __init__(self, work: "Work") -> None:
        self._work = work
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self.waiting: deque[tuple[int, float]] = deque()
        self.used_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports do not inherit from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        self._work.fail(exc or ConnectionError("the service closed a connection"))

    def send(self, place: int) -> None:
        if self._transport is not None:
            self.used_at = time.time()
            self.waiting.append((place, self.used_at))
            self._transport.write(self._work.requests[place])

    def data_received(self, data: bytes) -> None:
        if self._buffer:
            data = self._buffer + data
        at = time.time()
        while end := _end_of_answer(data):
            place, began = self.waiting.popleft()
            answer, data = data[:end], data[end:]
            if answer[9:12] == b"200":
                body = answer[answer.index(b"\r\n\r\n") + 4 :]
                self._work.note(self, Answered(place, began, at, body))
            elif answer[9:12] in TRY_AGAIN:
                self._work.put_back(self, place, _pause(answer))
            else:
                self._work.fail(AssertionError(answer[:500]))
        self._buffer = data


class Work:
    def __init__(self, job: Job) -> None:
        self.requests = job.requests
        self._next: Iterator[int] = iter(range(len(job.requests)))
        self._again: deque[int] = deque()
        self._paced = job.rate > 0
        self.done = Done([], 0, 0.0)
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def send_next(self, connection: Connection) -> None:
        place = self._again.popleft() if self._again else next(self._next, None)
        if place is not None:
            connection.send(place)

    def note(self, connection: Connection, answered: Answered) -> None:
        self.done.answers.append(answered)
        if len(self.done.answers) == len(self.requests) and not self.ended.done():
            self.ended.set_result(None)
        elif not self._paced:
            self.send_next(connection)

    def put_back(self, connection: Connection, place: int, pause: float) -> None:
        self.done.refused += 1
        self._again.append(place)
        asyncio.get_running_loop().call_later(pause, self.send_next, connection)

    def fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


def _end_of_answer(data: bytes) -> int:
    """Zero while it is incomplete."""
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return 0
    end = head + 4 + _number(data[:head], b"content-length: ")
    return end if len(data) >= end else 0


def _pause(answer: bytes) -> float:
    head = answer[: answer.index(b"\r\n\r\n")]
    return min(_number(head, b"retry-after: "), LONGEST_PAUSE_SECONDS)


def _number(head: bytes, name: bytes) -> int:
    head = head.lower()
    place = head.find(name)
    return int(head[place + len(name) :].partition(b"\r")[0]) if place >= 0 else 0


async def generate(job: Job) -> Done:
    loop, work = asyncio.get_running_loop(), Work(job)
    connections = []
    for _ in range(job.connections):
        _, connection = await loop.create_connection(lambda: Connection(work), HOST, job.port)
        connections.append(connection)
    before = _cpu()
    if job.rate:
        await _send_paced(work, connections, _instants(job))
    else:
        for connection in connections * job.at_once:
            work.send_next(connection)
    await work.ended
    work.done.cpu = _cpu() - before
    return work.done


def _instants(job: Job) -> Iterator[float]:
    """When each request is sent, in seconds; random, but the same in every run."""
    chance = random.Random(job.rate)
    gaps = (chance.expovariate(job.rate) if job.by_chance else 1 / job.rate for _ in job.requests)
    return accumulate(gaps)


async def _send_paced(work: Work, connections: list[Connection], instants: Iterable[float]) -> None:
    """Uses the connection with the fewest requests in flight, so that none queues needlessly.

    Among equals it uses the longest idle one, because the service closes idle connections.
    """
    began = time.monotonic()
    for instant in instants:
        if (wait := began + instant - time.monotonic()) > 0:
            await asyncio.sleep(wait)
        if work.ended.done():
            return
        work.send_next(
            min(connections, key=lambda connection: (len(connection.waiting), connection.used_at))
        )


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main(job: str, result: str) -> None:
    reported = msgspec.msgpack.decode(Path(job).read_bytes(), type=Job)
    # It makes no reference cycles, so garbage collection would only take time.
    gc.disable()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        done = runner.run(generate(reported))
    Path(result).write_bytes(msgspec.msgpack.encode(done))


if __name__ == "__main__":
    main(*sys.argv[1:])
