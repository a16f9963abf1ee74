"""uvicorn's HTTP protocol with two additions.

The head of an answer is written together with its body. And a file can be sent to the socket
directly, without a copy.
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
    """The socket for one answer; `sent` tells uvicorn how many bytes did not go through it.

    The answer refers to this object, so this object has only a weak reference to the answer:
    otherwise each request would leave a reference cycle, and collecting them takes milliseconds.
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
            # Too many files may be open; sending through uvicorn needs no further descriptor.
            return None

    def sent(self, count: int) -> None:
        self._answer.expected_content_length -= count


class WholeAnswer(RequestResponseCycle):
    """Writes head and body together, if the body comes in one piece.

    Everything else, such as streams, is written by uvicorn as it comes.
    """

    _head: HTTPResponseStartEvent | None = None

    async def send(self, message: ASGISendEvent) -> None:
        # A second head replaces one that waits: the application has failed in between.
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
        """Returns False for one piece of several, and for what uvicorn would refuse."""
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
        """Does what uvicorn does after the last piece."""
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class SendfileProtocol(HttpToolsProtocol):
    def on_headers_complete(self) -> None:
        """Called before the application begins, which runs in a separate task."""
        super().on_headers_complete()
        # It is None before the first request, although its type excludes that.
        answer = cast("RequestResponseCycle | None", self.cycle)
        if answer is not None:
            answer.__class__ = WholeAnswer
        if answer is not None and self.scheme == "http":
            answer.scope["extensions"] = {EXTENSION: {"line": TransportHandle(answer)}}
