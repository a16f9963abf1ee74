"""Reads HTTP/1.1 answers within bounds, whatever a receiver sends.

Parsing follows llhttp's strict grammar. Nothing is decompressed, and nothing is kept beyond the
bounds, so that a hostile answer costs no more memory than a normal one. Once the head is complete,
the status decides the outcome: a later error only truncates the body.
"""

from typing import Final

import httptools

BODY_KEPT: Final = 16 * 1024
# Includes the interim answers before it. Checked after each read, so one read may exceed it.
LARGEST_HEAD: Final = 32 * 1024
MOST_HEADERS: Final = 128
MOST_INTERIM_ANSWERS: Final = 8
# Also counts chunk sizes, their extensions and trailers, which are not kept but take time.
_LARGEST_BODY_WITH_FRAMING: Final = 2 * BODY_KEPT
# llhttp would also accept answers of RTSP or ICE; it skips empty lines before any answer.
_FIRST_BYTES: Final = b"H\r\n"


class BadAnswer(Exception):
    """What came back is not an HTTP answer, or goes beyond the bounds."""


class AnswerReader:
    """Reads the answers of one connection: for each, call `begin`, then `feed` until `over`."""

    __slots__ = (
        "_budget",
        "_interim",
        "_parser",
        "_untouched",
        "body",
        "headers",
        "over",
        "reusable",
        "status",
        "truncated",
    )

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self.begin()

    def begin(self) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.body = bytearray()
        self.truncated = False
        self.over = False
        self.reusable = False
        self._budget = LARGEST_HEAD
        self._interim = 0
        self._untouched = True

    def feed(self, data: memoryview) -> None:
        """Raises BadAnswer only while the head is incomplete."""
        if self._untouched:
            self._untouched = False
            if data[0] not in _FIRST_BYTES:
                raise BadAnswer
        self._budget -= len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.cut()
        else:
            if self._budget < 0 and not self.over:
                self.cut()

    def cut(self) -> None:
        """Ends this answer early; raises BadAnswer while the head is incomplete."""
        self.reusable = False
        if not self.status:
            raise BadAnswer
        if not self.over:
            self.truncated = True
            self.over = True

    def connection_ended(self, *, is_reset: bool = False) -> None:
        """A body without a length ends here, but not with a reset; any other is truncated."""
        if self.status and not (self.over or is_reset or self._has_length()):
            self.over = True
        else:
            self.cut()

    def release(self) -> None:
        """Breaks the reference cycle with the parser; nothing can be read afterwards."""
        del self._parser

    def _has_length(self) -> bool:
        codings = [value for name, value in self.headers if name == "transfer-encoding"]
        if codings:
            return codings[-1].rpartition(",")[2].strip().lower() == "chunked"
        return any(name == "content-length" for name, _ in self.headers)

    # Callbacks of httptools; any exception raised in them makes feed_data raise HttpParserError

    def on_message_begin(self) -> None:
        if self.over:
            raise BadAnswer  # a second answer to one request

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status:
            return  # a trailer
        headers = self.headers
        if len(headers) == MOST_HEADERS:
            raise BadAnswer
        headers.append((name.decode("latin-1").lower(), value.decode("latin-1")))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self.status = status
            self._budget = _LARGEST_BODY_WITH_FRAMING
            return
        self._interim += 1
        self.headers.clear()
        # For a change of protocol (101), feed_data raises HttpParserUpgrade.
        if status < 100 or self._interim > MOST_INTERIM_ANSWERS:
            raise BadAnswer

    def on_body(self, chunk: bytes) -> None:
        room = BODY_KEPT - len(self.body)
        self.body += chunk[:room]
        if not self.status or len(chunk) > room:
            raise BadAnswer

    def on_message_complete(self) -> None:
        if self.status:
            self.over = True
            self.reusable = self._parser.should_keep_alive()
