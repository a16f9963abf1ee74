"""Sends a part of a file in pieces: a bounded amount of memory each, and turns among downloads."""

import asyncio
import logging
from collections.abc import Generator

from starlette.types import Receive, Send

from cuepost.doors.media.conditions import Span
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

    async def stream(self, file: MediaFile, span: Span, receive: Receive, send: Send) -> None:
        """Returns early when the client has gone, stands still, or the file has been cut off."""
        async with asyncio.TaskGroup() as group:
            hung_up = group.create_task(_wait_for_end(receive))
            try:
                await self._send_all(file, span, hung_up, send)
            finally:
                hung_up.cancel()

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
        logger.warning("event=media_unreadable cause=%s", error.strerror)
        return b""
    if not piece:
        logger.warning("event=media_cut_off")
    return piece


async def _wait_for_end(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _body(piece: bytes, *, more: bool) -> dict[str, object]:
    return {"type": "http.response.body", "body": piece, "more_body": more}
