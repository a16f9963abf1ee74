"""HTTP as uvicorn speaks it, with a line past it: a file can go to the socket without a copy."""

import os
import weakref
from typing import cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cuepost.doors.media.straight import EXTENSION


class SocketLine:
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


class LinedProtocol(HttpToolsProtocol):
    def on_headers_complete(self) -> None:
        """The application begins after this, in a task of its own."""
        super().on_headers_complete()
        # There is none before the first request, whatever its type says.
        answer = cast(RequestResponseCycle | None, self.cycle)
        if answer is not None and self.scheme == "http":
            answer.scope["extensions"] = {EXTENSION: {"line": SocketLine(answer)}}
