"""HTTP as uvicorn speaks it, with two additions.

The head of an answer leaves together with its body, in one write instead of two. And a file can go
to the socket past the event loop, without a copy.
"""

import os
import weakref
from typing import cast

from uvicorn._types import ASGISendEvent, HTTPResponseBodyEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from cuepost.interfaces.media.socket_handle import EXTENSION

CRLF = b"\r\n"
ALLOWED_IN_HEADERS = bytes(each for each in range(256) if each == 9 or (each >= 32 and each != 127))


class TransportHandle:
    """Of one answer; uvicorn is told what went past it, or it would miss the bytes in the end.

    The answer holds the line, so the line must not hold the answer: each request would leave a
    cycle behind, and what collects those stops everything for milliseconds.
    """

    def __init__(self, answer: RequestResponseCycle) -> None:
        self._answer = weakref.proxy(answer)

    def descriptor(self) -> int | None:
        transport = self._answer.transport
        if transport.is_closing() or transport.get_write_buffer_size():
            return None
        try:
            return os.dup(transport.get_extra_info("socket").fileno())
        except OSError:
            # There are too many files open, say; the slower way needs no further one.
            return None

    def sent(self, count: int) -> None:
        self._answer.expected_content_length -= count


class WholeAnswer(RequestResponseCycle):
    """Writes an answer of one piece at once: its head waits until the body is there.

    Whatever else there is, streams above all, is written by uvicorn, as it comes.
    """

    _head: HTTPResponseStartEvent | None = None

    async def send(self, message: ASGISendEvent) -> None:
        # Another head takes the place of one that waits: the application has failed in between.
        head, self._head = self._head, None
        if message["type"] == "http.response.start":
            if self._may_wait(message):
                self._head = message
                return
        elif head is not None:
            if self.flow.write_paused and not self.disconnected:
                await self.flow.drain()
            if message["type"] == "http.response.body" and self._is_written(head, message):
                return
            await super().send(head)
        await super().send(message)

    def _may_wait(self, head: HTTPResponseStartEvent) -> bool:
        headers = dict(head["headers"])
        return (
            b"content-length" in headers
            and b"connection" not in headers
            and b"transfer-encoding" not in headers
            and not self.response_started
            and self.scope["method"] != "HEAD"
        )

    def _is_written(self, head: HTTPResponseStartEvent, message: HTTPResponseBodyEvent) -> bool:
        """Not if this is one piece of several, or if uvicorn would refuse it."""
        body = message.get("body", b"")
        headers = [*self.default_headers, *head["headers"]]
        lines = b"".join([part for name, value in headers for part in (name, b": ", value, CRLF)])
        if (
            message.get("more_body", False)
            or self.disconnected
            or (b"content-length", b"%d" % len(body)) not in headers
            or lines.translate(None, ALLOWED_IN_HEADERS) != CRLF * len(headers)
        ):
            return False
        end = CRLF if self.keep_alive else b"connection: close\r\n\r\n"
        self.transport.write(b"".join((STATUS_LINE[head["status"]], lines, end, body)))
        self._complete()
        return True

    def _complete(self) -> None:
        """As uvicorn does after the last piece."""
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class SendfileProtocol(HttpToolsProtocol):
    def on_headers_complete(self) -> None:
        """The application begins after this, in a task of its own."""
        super().on_headers_complete()
        # There is none before the first request, whatever its type says.
        answer = cast(RequestResponseCycle | None, self.cycle)
        if answer is not None:
            answer.__class__ = WholeAnswer
        if answer is not None and self.scheme == "http":
            answer.scope["extensions"] = {EXTENSION: {"line": TransportHandle(answer)}}
