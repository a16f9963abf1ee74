"""A wire to PostgreSQL that can be cut in the worst moment: committed, and no one was told."""

import asyncio
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit, urlunsplit

PATIENCE_SECONDS = 30.0
# The driver sends it as a simple query, and so the server answers with the same word.
COMMIT = b"COMMIT\x00"


class CuttingProxy:
    def __init__(self, url: str) -> None:
        self._upstream = urlsplit(url)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="cutting proxy")
        self._up = threading.Event()
        self._cut = threading.Event()
        self._wires: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._armed = False
        self._port = 0

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._up.wait(PATIENCE_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._close)
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()

    @property
    def url(self) -> str:
        user = self._upstream.netloc.rpartition("@")[0]
        return urlunsplit(self._upstream._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    def cut_next_commit(self) -> None:
        """Returns when it has happened: the server has committed, the client never hears of it."""
        self._cut.clear()
        self._loop.call_soon_threadsafe(self._arm)
        assert self._cut.wait(PATIENCE_SECONDS), "nothing was committed"

    def _arm(self) -> None:
        self._armed = True

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self._up.set()
        with suppress(asyncio.CancelledError):
            await self._server.serve_forever()

    def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for wire in self._wires:
            wire.cancel()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = asyncio.current_task()
        assert wire is not None
        self._wires.add(wire)
        upstream, downstream = await asyncio.open_connection(
            self._upstream.hostname, self._upstream.port
        )
        cut = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_on(reader, downstream, cut))
                group.create_task(_pass_back(upstream, writer, cut))
        except (ExceptionGroup, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()
            downstream.transport.abort()
            self._wires.discard(wire)
            if cut.is_set():
                self._cut.set()

    async def _pass_on(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
    ) -> None:
        while data := await reader.read(65_536):
            if self._armed and COMMIT in data:
                self._armed = False
                cut.set()
            writer.write(data)
            await writer.drain()
        raise ConnectionError


async def _pass_back(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, cut: asyncio.Event
) -> None:
    while data := await reader.read(65_536):
        if cut.is_set() and COMMIT in data:
            raise ConnectionError
        writer.write(data)
        await writer.drain()
    raise ConnectionError
