"""Sends a part of a file in pieces: a bounded amount of memory each, and turns among downloads."""

import asyncio
import logging
import os
from collections.abc import Generator

from starlette.types import Receive, Send

from cuepost.interfaces.media.conditions import Span
from cuepost.interfaces.media.socket_handle import AT_ONCE, SocketHandle, room, sent
from cuepost.ports.media import MediaFile

PIECE = 256 * 1024
# However many downloads there are: everybody else on the event loop waits for two pieces at most.
TURNS = 2
STALL_SECONDS = 120.0

logger = logging.getLogger("cuepost.media")


class _NextRound:
    """Lets everything else on the event loop go first, once."""

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
        """Returns early when the client has gone, stands still, or the file has been cut off."""
        descriptor = None
        if line is not None:
            # The head waits for a first piece, and has to leave before anything goes past it.
            await send(_body(b"", more=True))
            descriptor = line.descriptor()
        async with asyncio.TaskGroup() as group:
            hung_up = group.create_task(_wait_for_end(receive))
            try:
                if line is None or descriptor is None:
                    await self._send_all(file, span, hung_up, send)
                elif await self._send_straight(file, span, hung_up, descriptor):
                    line.sent(len(span))
                    await send(_body(b"", more=False))
            finally:
                hung_up.cancel()
                if descriptor is not None:
                    os.close(descriptor)

    async def _send_straight(
        self, file: MediaFile, span: Span, hung_up: "asyncio.Task[None]", descriptor: int
    ) -> bool:
        """Whether all has been sent."""
        place = span.start
        while not hung_up.done():
            try:
                async with self._turns:
                    done = await sent(file, descriptor, place, span.stop - place)
            except (EOFError, OSError) as error:
                await self._break_off(error, hung_up)
                return False
            place += done
            if place == span.stop:
                return True
            if done < AT_ONCE and not await room(descriptor, hung_up, self._stall_seconds):
                logger.info("event=download_stalled")
                return False
        return False

    async def _break_off(self, error: Exception, hung_up: "asyncio.Task[None]") -> None:
        """A client that has gone is waited for until the server knows it too."""
        if isinstance(error, ConnectionError):
            await asyncio.wait([hung_up], timeout=self._stall_seconds)
        else:
            _tell(error)

    async def _send_all(
        self, file: MediaFile, span: Span, hung_up: "asyncio.Task[None]", send: Send
    ) -> None:
        place = span.start
        while place < span.stop and not hung_up.done():
            if not await self._has_room(send):
                logger.info("event=download_stalled")
                return
            async with self._turns:
                piece = await _read(file, place, min(PIECE, span.stop - place))
                if not piece:
                    return
                place += len(piece)
                await send(_body(piece, more=place < span.stop))
                await _NextRound()

    async def _has_room(self, send: Send) -> bool:
        """Sending nothing waits until what was sent before has left: nobody's turn is held up."""
        try:
            async with asyncio.timeout(self._stall_seconds):
                await send(_body(b"", more=True))
        except TimeoutError:
            return False
        return True


async def _read(file: MediaFile, start: int, count: int) -> bytes:
    """Nothing where the file ends too early or cannot be read: the client notices the break."""
    try:
        piece = await file.read(start, count)
    except OSError as error:
        _tell(error)
        return b""
    if not piece:
        _tell(EOFError())
    return piece


def _tell(error: Exception) -> None:
    if isinstance(error, OSError):
        logger.warning("event=media_unreadable cause=%s", error.strerror)
    else:
        logger.warning("event=media_cut_off")


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(piece: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": piece, "more_body": more}
