"""A connection to the service that can break in the middle of a message."""

import asyncio
import threading
from contextlib import suppress
from typing import Self

PATIENCE_SECONDS = 30.0


class BreakingWire:
    def __init__(self, port: int) -> None:
        self._upstream_port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="breaking wire")
        self._up = threading.Event()
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self._wires: set[asyncio.Task[None]] = set()
        self.port = 0

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
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Every connection there is now; new ones may be made."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for end in list(self._ends):
            end.transport.abort()

    def _close(self) -> None:
        assert self._server is not None
        self._server.close()
        for wire in self._wires:
            wire.cancel()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve())

    async def _serve(self) -> None:
        self._server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        self._up.set()
        with suppress(asyncio.CancelledError):
            await self._server.serve_forever()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = asyncio.current_task()
        assert wire is not None
        self._wires.add(wire)
        ends = {writer}
        try:
            upstream, downstream = await asyncio.open_connection("127.0.0.1", self._upstream_port)
            ends.add(downstream)
            self._ends |= ends
            async with asyncio.TaskGroup() as group:
                group.create_task(_pass_on(reader, downstream))
                group.create_task(_pass_on(upstream, writer))
        except (OSError, ExceptionGroup, asyncio.CancelledError):
            pass
        finally:
            self._ends -= ends
            for end in ends:
                end.transport.abort()
            self._wires.discard(wire)


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(65_536):
        writer.write(piece)
        await writer.drain()
    # One side has hung up: so does the wire.
    raise ConnectionError
