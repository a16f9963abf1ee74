"""One connection to a receiver: writes a request and waits for its answer until a deadline.

Deadlines are instants of `time.perf_counter`, because uvloop's own clock counts milliseconds.
"""

import asyncio
import ssl
from collections.abc import Callable
from fcntl import ioctl
from functools import partial
from struct import unpack
from termios import TIOCOUTQ
from time import perf_counter
from typing import Final, cast

from cuepost.adapters.answer_reader import AnswerReader, BadAnswer
from cuepost.adapters.tls_faults import fault_in
from cuepost.domain.attempt import TlsFault

Receiver = tuple[str, str, int]
"""Scheme, host and port: requests to the same receiver share connections."""

Settled = Callable[[Exception | None], None]
"""Called once: with None when `answer` is complete, or with the reason why there is none."""

# How long to wait for the body after the head of an answer.
BODY_TIMEOUT_SECONDS: Final = 2.0
# An idle socket accepts at least this many bytes at once.
_SENT_AT_ONCE: Final = 32 * 1024


class ConnectionBroke(Exception):
    """The connection ended before the first byte of an answer arrived."""


class TlsBroke(ConnectionBroke):
    """The connection ended by a TLS error, in TLS 1.3 possibly after the client's handshake."""

    def __init__(self, fault: TlsFault) -> None:
        super().__init__(fault)
        self.fault = fault


class HttpConnection(asyncio.BufferedProtocol):
    """A BufferedProtocol, because that reads TLS into one buffer instead of making bytes objects.

    Cancelling an exchange closes the connection. One timer serves all exchanges: a timer that fires
    too early is set again, which is cheaper than one timer per exchange.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receiver: Receiver,
        buffer: memoryview,
        expires_at: float,
        on_closed: Callable[["HttpConnection"], None],
    ) -> None:
        """`buffer` may be shared: the loop fills it and passes it on before it reads again."""
        self._loop = loop
        self.receiver = receiver
        self._buffer = buffer
        self._on_closed = on_closed
        self.answer = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._settled: Settled | None = None
        self._broken_by: Exception | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = self._deadline = self.expires_at = expires_at
        self._sent_at = 0.0
        # From the request to the first byte of its answer; None until that byte has come.
        self.first_byte_ms: float | None = None
        self._request_size = 0
        self.usable = False

    async def exchange(self, request: bytes, deadline: float) -> None:
        """`answer` is valid until the next exchange. TimeoutError, ConnectionBroke or BadAnswer."""
        waiter: asyncio.Future[Exception | None] = self._loop.create_future()
        self.begin(request, deadline, partial(_settle_waiter, waiter))
        try:
            failure = await waiter
        except BaseException:
            self._settled = None
            self.abort()
            raise
        if failure is not None:
            raise failure

    def begin(self, request: bytes, deadline: float, settled: Settled) -> None:
        """As `exchange`, without a coroutine; the loop calls `settled`."""
        if self._transport is None or not self.usable:
            raise self._broken_by or ConnectionBroke
        self.answer.begin()
        self.first_byte_ms = None
        self._deadline = deadline
        self._request_size = len(request)
        self._sent_at = perf_counter()
        self._settled = settled
        self._transport.write(request)
        if self._timer is None or deadline < self._fires_at:
            self._set_timer(min(deadline, self.expires_at))

    def abort(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()
        self._on_closed(self)

    # Callbacks of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports implement the interface but do not inherit from it.
        self._transport = cast(asyncio.Transport, transport)
        self.usable = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        if self._settled is None:
            # Data without a request: the next request must not take it for its answer.
            self._broken_by = BadAnswer()
            self.abort()
            return
        answer = self.answer
        in_body = answer.status
        if self.first_byte_ms is None:
            self.first_byte_ms = (perf_counter() - self._sent_at) * 1000
        try:
            answer.feed(self._buffer[:count])
        except BadAnswer as error:
            self._settle(error)
            return
        if answer.over:
            self._settle()
        elif answer.status and not in_body:
            self._deadline = min(self._deadline, perf_counter() + BODY_TIMEOUT_SECONDS)
            self._set_timer(self._deadline)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_closed(self)
        broke = TlsBroke(fault_in(error)) if isinstance(error, ssl.SSLError) else ConnectionBroke()
        if self._settled is None:
            self._broken_by = self._broken_by or broke
        elif self.first_byte_ms is None:
            self._settle(broke)
        else:
            self._settle_with_what_came(whole=error is None)
        self.answer.release()

    def _settle_with_what_came(self, *, whole: bool) -> None:
        try:
            if whole:
                self.answer.connection_ended()
            else:
                self.answer.cut()
        except BadAnswer as error:
            self._settle(error)
        else:
            self._settle()

    def _settle(self, failure: Exception | None = None) -> None:
        settled, self._settled = self._settled, None
        if failure is not None or not self.answer.reusable or self._has_unsent_bytes():
            self.abort()
        # Last, because `settled` may send the next request over this connection.
        if settled is not None:
            settled(failure)

    def _has_unsent_bytes(self) -> bool:
        if self._transport is None or self._transport.get_write_buffer_size() > 0:
            return True
        if self._request_size <= _SENT_AT_ONCE:
            return False
        # Under TLS the loop counts only bytes that are not encrypted yet.
        return self.receiver[0] == "https" or _has_unacknowledged_bytes(self._transport)

    # The timer: for the deadline during an exchange, for `expires_at` while the connection is idle

    def _set_timer(self, due: float) -> None:
        if self._timer is not None:
            if self._fires_at <= due:
                return
            self._timer.cancel()
        self._fires_at = due
        self._timer = self._loop.call_later(max(0.0, due - perf_counter()), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        due = self.expires_at if self._settled is None else self._deadline
        if perf_counter() < due:
            self._set_timer(due)
        elif self._settled is None:
            self.abort()
        elif self.answer.status:
            self.answer.cut()
            self._settle()
        else:
            self._settle(TimeoutError())


def _settle_waiter(waiter: "asyncio.Future[Exception | None]", failure: Exception | None) -> None:
    # The future is already done if the waiting task has just been cancelled.
    if not waiter.done():
        waiter.set_result(failure)


def _has_unacknowledged_bytes(transport: asyncio.Transport) -> bool:
    """Whether the kernel holds bytes that the peer's kernel has not acknowledged.

    A peer that answers after it has read the whole request acknowledges it along with the answer.
    """
    connection = transport.get_extra_info("socket")
    try:
        (size,) = unpack("i", ioctl(connection.fileno(), TIOCOUTQ, bytes(4)))
    except OSError:
        # Not every system supports TIOCOUTQ.
        return True
    return bool(size)
