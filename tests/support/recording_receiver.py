"""A receiver in a thread of its own that writes down every request and answers as it is told."""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

PATIENCE_SECONDS = 30.0
CLOSED = (asyncio.IncompleteReadError, ConnectionError)


@dataclass(slots=True)
class Received:
    """`answered_at` stays empty when the sender went away before it got its answer."""

    path: str
    headers: dict[str, str]
    body: bytes
    at: float
    status: int | None = None
    answered_at: float | None = None

    @property
    def event_id(self) -> str:
        return self.headers["webhook-id"]


class RecordingReceiver:
    """Answers 200 after `delay` seconds; while held, no request is answered.

    `delays` are those of single paths.
    """

    def __init__(self, delay: float = 0.0) -> None:
        self.delay = delay
        self.delays: dict[str, float] = {}
        self.requests: list[Received] = []
        self.most_at_once: Counter[str] = Counter()
        self._at_once: Counter[str] = Counter()
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="recording receiver")
        self._open = asyncio.Event()
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._up = threading.Event()
        self.port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._close)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def hold(self) -> None:
        self._loop.call_soon_threadsafe(self._open.clear)

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._open.set)

    @property
    def under_way(self) -> int:
        return self._at_once.total()

    def wait_until(self, condition: Callable[[Self], bool], what: str) -> None:
        """Looks after every request and every answer."""
        with self._changed:
            assert self._changed.wait_for(lambda: condition(self), PATIENCE_SECONDS), what

    def seen(self) -> Sequence[Received]:
        with self._changed:
            return list(self.requests)

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._open.set()
        self._server = await asyncio.start_server(self._talk, "127.0.0.1", 0, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]
        self._up.set()
        with suppress(asyncio.CancelledError):
            await self._server.serve_forever()

    def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.current_task()
        assert talk is not None
        self._talks.add(talk)
        try:
            while True:
                await self._answer(await _request(reader), reader, writer)
        except (*CLOSED, asyncio.CancelledError):
            writer.close()
        finally:
            self._talks.discard(talk)

    async def _answer(
        self, received: Received, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._note(received)
        try:
            if delay := self.delays.get(received.path, self.delay):
                with suppress(TimeoutError):
                    await asyncio.wait_for(asyncio.Event().wait(), delay)
            await self._open.wait()
            if reader.at_eof():
                raise ConnectionError
            writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")
            received.status, received.answered_at = 200, time.time()
            await writer.drain()
        finally:
            with self._changed:
                self._at_once[received.path] -= 1
                self._changed.notify_all()

    def _note(self, received: Received) -> None:
        with self._changed:
            self.requests.append(received)
            self._at_once[received.path] += 1
            most = max(self.most_at_once[received.path], self._at_once[received.path])
            self.most_at_once[received.path] = most
            self._changed.notify_all()


async def _request(reader: asyncio.StreamReader) -> Received:
    head = await reader.readuntil(b"\r\n\r\n")
    line, *rest = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
    headers = dict(map(_field, rest))
    body = await reader.readexactly(int(headers["content-length"]))
    return Received(line.split(" ")[1], headers, body, time.time())


def _field(text: str) -> tuple[str, str]:
    name, _, value = text.partition(":")
    return name.lower(), value.strip()
