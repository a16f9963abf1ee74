"""HTTP on one connection, within the limits of the guard.

uvicorn and its parser do not limit the head, the trailers, the time that a client takes, or
pipelined requests. This subclass counts what the parser reports, and ends the connection.
"""

import asyncio
import weakref
from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from math import inf
from typing import Any, NoReturn

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from cuepost.bootstrap.inbound_answers import answer_to
from cuepost.bootstrap.inbound_guard import InboundGuard, Refusal
from cuepost.bootstrap.whole_answer import WholeAnswer
from cuepost.domain.client_address import client_of, is_trusted
from cuepost.interfaces.media.socket_handle import EXTENSION

READ_BYTES = 32_768
# A body must grow by this many bytes within its timeout, or end.
LEAST_PROGRESS = 1_024
# After an early answer this much of the body is still read, so that the client sees the answer.
MOST_UNREAD = 1_048_576
MOST_PIPELINED = 32
FORWARDED = b"x-forwarded-for"
_CALLBACKS = (
    *("connection_made", "connection_lost", "get_buffer", "buffer_updated"),
    *("eof_received", "pause_writing", "resume_writing"),
)


class _Ended(Exception):
    """Stops the parser; the connection is closed."""


class _State(Enum):
    IDLE = auto()
    HEAD = auto()
    BODY = auto()


class GuardedProtocol(HttpToolsProtocol):
    def __init__(self, guard: InboundGuard, buffer: bytearray, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._guard = guard
        self._buffer = buffer
        self._limits = guard.limits
        self._is_over = False
        self.peer = ""
        self._is_proxied = False
        self._state = _State.IDLE
        self.deadline = inf
        # Of the head that is being read.
        self.url, self.headers, self._header_bytes = b"", [], 0
        # Bytes read since the last callback of the parser.
        self._unparsed = 0
        self._progress = self._unread = 0
        # The number of completely received requests, and of complete answers.
        self._complete = self._answered = 0
        self._unsent = 0
        self._unsent_until = inf

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if self.client is not None:
            host, port = self.client
            self.peer = client_of(host, (), ())
            self.client = (self.peer, port)
        self._is_proxied = is_trusted(self.peer, self._limits.trusted_proxies)
        refusal = self._guard.admit(self)
        if refusal is not None:
            self._refuse(refusal)
            return
        self.deadline = self.loop.time() + self._limits.head_seconds
        self._guard.waits(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_over = True
        self._guard.leave(self)
        self._guard.flows(self)
        super().connection_lost(exc)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._is_over:
            return
        self._unset_keepalive_if_required()
        if self._state is _State.IDLE:
            self._state = _State.HEAD
            self.deadline = self.loop.time() + self._limits.head_seconds
        self._unparsed += nbytes
        try:
            self.parser.feed_data(memoryview(self._buffer)[:nbytes])
        except httptools.HttpParserUpgrade:
            # No other protocol is supported; the request is answered like any other.
            pass
        except httptools.HttpParserError:
            if not self._is_over:
                self._refuse(Refusal.MALFORMED)
        else:
            if self._unparsed > self._limits.request_line + self._limits.header_bytes:
                self._refuse_endless()

    def _refuse_endless(self) -> None:
        """Refuse an endless request line or header, for which the parser makes no callback."""
        has_line = self._state is not _State.HEAD or self.url or self.headers
        self._refuse(Refusal.HEADER_BYTES if has_line else Refusal.REQUEST_LINE)

    def on_message_begin(self) -> None:
        if self._state is _State.IDLE:
            # The requests before it came with the same read.
            self._state = _State.HEAD
            self.deadline = self.loop.time() + self._limits.head_seconds
        self._header_bytes = self._unread = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._limits.request_line:
            self._stop(Refusal.REQUEST_LINE)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called for headers, and for the trailers after a body."""
        super().on_header(name, value)
        self._header_bytes += len(name) + len(value)
        if len(self.headers) > self._limits.header_count:
            self._stop(Refusal.HEADER_COUNT)
        if self._header_bytes > self._limits.header_bytes:
            self._stop(Refusal.HEADER_BYTES)

    def on_headers_complete(self) -> None:
        """Called before the application begins, which runs in a separate task."""
        if len(self.pipeline) >= MOST_PIPELINED:
            self._stop(Refusal.PIPELINE)
        if self._is_proxied:
            forwarded = [
                value.decode("latin-1") for name, value in self.headers if name == FORWARDED
            ]
            client = client_of(self.peer, forwarded, self._limits.trusted_proxies)
            self.scope["client"] = (client, 0)
        self._unparsed = self._progress = 0
        self._state = _State.BODY
        self.deadline = self.loop.time() + self._limits.body_seconds
        super().on_headers_complete()
        self.cycle.__class__ = WholeAnswer
        if self.scheme == "http":
            # The answer refers to the scope. A reference back that is not weak would leave a cycle
            # of references for each request, and collecting them takes milliseconds.
            self.scope["extensions"] = {EXTENSION: {"line": weakref.proxy(self.cycle)}}

    def on_body(self, body: bytes) -> None:
        self._unparsed = 0
        self._progress += len(body)
        if self._progress >= LEAST_PROGRESS:
            self._progress = 0
            self.deadline = self.loop.time() + self._limits.body_seconds
            self._guard.waits(self)
        if self.cycle.response_complete:
            self._unread += len(body)
            if self._unread > MOST_UNREAD:
                self._stop(Refusal.UNREAD_BODY)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed = 0
        self._state = _State.IDLE
        self.deadline = self.loop.time() + self._limits.idle_seconds
        self._complete += 1
        if self._complete > self._answered:
            self._guard.works(self)
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._answered += 1
        if self._complete <= self._answered and not self._is_over:
            if self._state is _State.IDLE:
                self.deadline = self.loop.time() + self._limits.idle_seconds
            elif self._state is _State.HEAD:
                # The next head has begun to arrive; its timeout counts from now.
                self.deadline = self.loop.time() + self._limits.head_seconds
            self._guard.waits(self)
        super().on_response_complete()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_answer()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._guard.flows(self)

    def _watch_answer(self) -> None:
        self._unsent = self.transport.get_write_buffer_size()
        self._unsent_until = self.loop.time() + self._limits.answer_seconds
        self._guard.blocks(self)

    def check_answer(self, now: float) -> None:
        """End the connection if the client reads nothing, because the answer uses memory."""
        unsent = self.transport.get_write_buffer_size()
        if unsent < self._unsent:
            self._unsent, self._unsent_until = unsent, now + self._limits.answer_seconds
        elif self._unsent_until <= now:
            self._guard.refused(Refusal.ANSWER_TIMEOUT, self.peer)
            self._abort()

    def expire(self) -> None:
        if self.flow.read_paused:
            # The service itself has paused reading.
            self.deadline = self.loop.time() + self._limits.body_seconds
        elif self._state is _State.BODY:
            self._refuse(Refusal.BODY_TIMEOUT)
        elif self._state is _State.HEAD or not self._complete:
            self._refuse(Refusal.HEAD_TIMEOUT)
        else:
            self._close()

    def displace(self) -> None:
        self._guard.refused(Refusal.DISPLACED, self.peer)
        self._abort()

    def _stop(self, reason: Refusal) -> NoReturn:
        self._refuse(reason)
        raise _Ended

    def _refuse(self, reason: Refusal) -> None:
        self._guard.refused(reason, self.peer)
        answer = answer_to(reason)
        if answer is not None and self._may_answer(reason):
            self.transport.write(answer)
        self._close()

    def _may_answer(self, reason: Refusal) -> bool:
        """Not during another answer, and not to a client that has sent nothing."""
        sent_nothing = reason is Refusal.HEAD_TIMEOUT and self._state is _State.IDLE
        # It is None before the first request, although its type excludes that.
        cycle: Any = self.cycle
        is_free = cycle is None or cycle.response_complete or not cycle.response_started
        return (
            is_free and not self.pipeline and self._complete <= self._answered and not sent_nothing
        )

    def _close(self) -> None:
        """Close after everything is sent; until then the connection counts, with a timeout."""
        self._is_over = True
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self._guard.works(self)
            self._watch_answer()
        else:
            self._guard.leave(self)

    def _abort(self) -> None:
        self._is_over = True
        self._guard.leave(self)
        self.transport.abort()


class BoundedReads(asyncio.BufferedProtocol):
    """Reads at most 32 KiB at a time from a socket, into one buffer that all connections share.

    A plain protocol, as uvicorn's is, would get up to 256 KB before it can refuse the first byte.
    """

    def __init__(self, guard: InboundGuard, buffer: bytearray, **uvicorns: Any) -> None:
        inside = GuardedProtocol(guard, buffer, **uvicorns)
        for name in _CALLBACKS:
            setattr(self, name, getattr(inside, name))


def guarded_connections(guard: InboundGuard) -> Callable[..., BoundedReads]:
    """The factory that uvicorn calls for each connection."""
    return partial(BoundedReads, guard, bytearray(READ_BYTES))
