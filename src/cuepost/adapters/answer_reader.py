"""Reads HTTP/1.1 answers within bounds, whatever a receiver sends.

The grammar is llhttp's, strictly. Nothing is decompressed, and beyond the bounds nothing is kept,
so that a hostile answer costs no more memory than a friendly one. Once the head is complete the
status has decided: what goes wrong after it only shortens the body.
"""

from typing import Final

import httptools

BODY_KEPT: Final = 16 * 1024
# With the interim answers before it, to the next full read: the bound is looked at after each.
LARGEST_HEAD: Final = 32 * 1024
MOST_HEADERS: Final = 128
MOST_INTERIM_ANSWERS: Final = 8
# Chunk sizes, their extensions and trailers count here: they are not kept, but they take time.
_LARGEST_BODY_WITH_FRAMING: Final = 2 * BODY_KEPT
# llhttp would take an answer of RTSP or ICE as well, and skips empty lines before any of them.
_FIRST_BYTES: Final = b"H\r\n"


class BadAnswer(Exception):
    """What came back is not an HTTP answer, or goes beyond the bounds."""


class AnswerReader:
    """Of one connection: `begin`, then `feed` until `over`, and again for the next answer."""

    __slots__ = (
        "_budget",
        "_interim",
        "_parser",
        "_parts",
        "_room",
        "_untouched",
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
        self.truncated = False
        self.over = False
        self.reusable = False
        self._parts: list[bytes] = []
        self._room = BODY_KEPT
        self._budget = LARGEST_HEAD
        self._interim = 0
        self._untouched = True

    @property
    def body(self) -> bytes:
        return b"".join(self._parts)

    def feed(self, data: memoryview) -> None:
        """Raises BadAnswer, and only while there is no complete head."""
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
        """Nothing more of this answer is wanted, or nothing more comes."""
        self.reusable = False
        if not self.status:
            raise BadAnswer
        if not self.over:
            self.truncated = True
            self.over = True

    def connection_ended(self) -> None:
        """Some bodies have no other end; for all others it comes too early."""
        if self.status and not self.over and not self._has_length():
            self.over = True
        else:
            self.cut()

    def release(self) -> None:
        """The parser and this object hold each other; let go, for no more is read."""
        del self._parser

    def _has_length(self) -> bool:
        codings = [value for name, value in self.headers if name == "transfer-encoding"]
        if codings:
            return codings[-1].rpartition(",")[2].strip().lower() == "chunked"
        return any(name == "content-length" for name, _ in self.headers)

    # What httptools calls; whatever is raised in here ends the feeding with an HttpParserError

    def on_message_begin(self) -> None:
        if self.over:
            raise BadAnswer  # more than was asked for

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
        # A change of protocol (101) ends the feeding by itself.
        if status < 100 or self._interim > MOST_INTERIM_ANSWERS:
            raise BadAnswer

    def on_body(self, chunk: bytes) -> None:
        if not self.status or len(chunk) > self._room:
            self._parts.append(chunk[: self._room])
            raise BadAnswer
        self._parts.append(chunk)
        self._room -= len(chunk)

    def on_message_complete(self) -> None:
        if self.status:
            self.over = True
            self.reusable = self._parser.should_keep_alive()
