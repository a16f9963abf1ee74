"""uvicorn's answer to a request with two additions.

Its head is written together with its body. And a file can be sent to the socket directly, without a
copy.
"""

import os

from uvicorn._types import ASGISendEvent, HTTPResponseBodyEvent, HTTPResponseStartEvent
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

CRLF = b"\r\n"
ALLOWED_IN_HEADERS = bytes(each for each in range(256) if each == 9 or (each >= 32 and each != 127))


class WholeAnswer(RequestResponseCycle):
    """Writes head and body together, if the body comes in one piece.

    Everything else, such as streams, is written by uvicorn as it comes. The answer is also the
    `SocketHandle` of its request.
    """

    _head: HTTPResponseStartEvent | None = None

    async def send(self, message: ASGISendEvent) -> None:
        # A second head replaces one that waits: the application has failed in between.
        head, self._head = self._head, None
        if message["type"] == "http.response.start":
            if b"content-length" in dict(message["headers"]) and not self.response_started:
                self._head = message
                return
        elif head is not None:
            if self.flow.write_paused and not self.disconnected:
                await self.flow.drain()
            if message["type"] == "http.response.body" and self._is_written(head, message):
                return
            await super().send(head)
        await super().send(message)

    def _is_written(self, head: HTTPResponseStartEvent, message: HTTPResponseBodyEvent) -> bool:
        """Returns False for one piece of several, and for what uvicorn refuses or has rules for."""
        body = message.get("body", b"")
        headers = [*self.default_headers, *head["headers"]]
        names = dict(headers)
        lines = b"".join([name + b": " + value + CRLF for name, value in headers])
        if (
            message.get("more_body", False)
            or self.disconnected
            or self.scope["method"] == "HEAD"
            or b"connection" in names
            or b"transfer-encoding" in names
            or names.get(b"content-length") != b"%d" % len(body)
            or lines.translate(None, ALLOWED_IN_HEADERS) != CRLF * len(headers)
        ):
            return False
        end = CRLF if self.keep_alive else b"connection: close\r\n\r\n"
        self.transport.write(b"".join((STATUS_LINE[head["status"]], lines, end, body)))
        # From here on as uvicorn does after the last piece.
        self.response_started = self.response_complete = True
        self.waiting_for_100_continue = False
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()
        return True

    def descriptor(self) -> int | None:
        if self.transport.is_closing() or self.transport.get_write_buffer_size():
            return None
        try:
            return os.dup(self.transport.get_extra_info("socket").fileno())
        except OSError:
            # Too many files may be open; sending through uvicorn needs no further descriptor.
            return None

    def sent(self, count: int) -> None:
        """Tells uvicorn how many bytes did not go through it."""
        self.expected_content_length -= count
