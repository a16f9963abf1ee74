"""Streams a range of a file in pieces, with bounded memory and fair turns among downloads."""

import asyncio
import logging
import os
from collections.abc import Generator

from starlette.types import Receive, Send

from cuepost.interfaces.media.conditions import Span
from cuepost.interfaces.media.socket_handle import AT_ONCE, SocketHandle, room, sent
from cuepost.ports.media import MediaFile

PIECE = 256 * 1024
# Limits how long other work on the event loop waits: two pieces, however many downloads there are.
TURNS = 2
STALL_SECONDS = 120.0

logger = logging.getLogger("cuepost.media")


class _YieldOnce:
    """Yields to the event loop once."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class Streamer:
    def __init__(self, *, stall_seconds: float = STALL_SECONDS) -> None:
        self._turns = asyncio.Semaphore(TURNS)
        self._stall_seconds = stall_seconds

    async def stream(
        self,
        file: MediaFile,
        span: Span,
        receive: Receive,
        send: Send,
        line: SocketHandle | None = None,
    ) -> None:
        """Returns early if the client disconnects or stalls, or if the file is truncated."""
        descriptor = None
        if line is not None:
            # The server buffers the head until the first piece; send it before using the socket.
            await send(_body(b"", more=True))
            descriptor = line.descriptor()
        async with asyncio.TaskGroup() as group:
            hung_up = group.create_task(_wait_for_end(receive))
            try:
                if line is None or descriptor is None:
                    await self._send_all(file, span, hung_up, send)
                elif await self._send_by_socket(file, span, hung_up, descriptor):
                    line.sent(len(span))
                    await send(_body(b"", more=False))
            finally:
                hung_up.cancel()
                if descriptor is not None:
                    os.close(descriptor)

    async def _send_by_socket(
        self, file: MediaFile, span: Span, hung_up: "asyncio.Task[None]", descriptor: int
    ) -> bool:
        """Whether the whole range was sent."""
        position = span.start
        while not hung_up.done():
            try:
                async with self._turns:
                    done = await sent(file, descriptor, position, span.stop - position)
            except (EOFError, OSError) as error:
                await self._handle_error(error, hung_up)
                return False
            position += done
            if position == span.stop:
                return True
            if done < AT_ONCE and not await room(descriptor, hung_up, self._stall_seconds):
                logger.info("event=download_stalled")
                return False
        return False

    async def _handle_error(self, error: Exception, hung_up: "asyncio.Task[None]") -> None:
        """After a connection error, wait until the server has noticed the disconnect."""
        if isinstance(error, ConnectionError):
            await asyncio.wait([hung_up], timeout=self._stall_seconds)
        else:
            _log(error)

    async def _send_all(
        self, file: MediaFile, span: Span, hung_up: "asyncio.Task[None]", send: Send
    ) -> None:
        position = span.start
        while position < span.stop and not hung_up.done():
            if not await self._has_room(send):
                logger.info("event=download_stalled")
                return
            async with self._turns:
                piece = await _read(file, position, min(PIECE, span.stop - position))
                if not piece:
                    return
                position += len(piece)
                await send(_body(piece, more=position < span.stop))
                await _YieldOnce()

    async def _has_room(self, send: Send) -> bool:
        """Wait outside a turn until the send buffer has drained, by sending an empty piece."""
        try:
            async with asyncio.timeout(self._stall_seconds):
                await send(_body(b"", more=True))
        except TimeoutError:
            return False
        return True


async def _read(file: MediaFile, start: int, count: int) -> bytes:
    """Empty if the file is truncated or unreadable; the client then sees an incomplete body."""
    try:
        piece = await file.read(start, count)
    except OSError as error:
        _log(error)
        return b""
    if not piece:
        _log(EOFError())
    return piece


def _log(error: Exception) -> None:
    if isinstance(error, OSError):
        logger.warning("event=media_unreadable cause=%s", error.strerror)
    else:
        logger.warning("event=media_cut_off")


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(piece: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": piece, "more_body": more}
