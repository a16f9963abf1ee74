"""Connections to receivers: each writes one request at a time and reads its answer.

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
from cuepost.domain.attempt import Outcome, Timings
from cuepost.ports.transport import Exchange

Receiver = tuple[str, str, int]
"""Scheme, host and port: requests to the same receiver share connections."""

Done = Callable[[Exchange | None], None]
"""Called once: with the exchange, or with None if the receiver had closed an idle connection."""

# How long to wait for the body after the head of an answer.
BODY_TIMEOUT_SECONDS: Final = 2.0
# An idle socket accepts at least this many bytes at once.
_SENT_AT_ONCE: Final = 32 * 1024
_REQUEST_TIMEOUT: Final = 408
_BROKE: Final = (Outcome.CONNECT_ERROR, Outcome.TLS_ERROR)


class HttpConnection(asyncio.BufferedProtocol):
    """A BufferedProtocol, because that reads TLS into one buffer instead of making bytes objects.

    After an exchange the connection is in the pool, or closed. One timer serves all exchanges: a
    timer that fires too early is set again, which is cheaper than one timer per exchange.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        receiver: Receiver,
        buffer: memoryview,
        expires_at: float,
        pool: "ConnectionPool",
    ) -> None:
        """`buffer` may be shared: the loop fills it and passes it on before it reads again."""
        self._loop = loop
        self.receiver = receiver
        self._buffer = buffer
        self._pool = pool
        self._answer = AnswerReader()
        self._transport: asyncio.Transport | None = None
        self._done: Done | None = None
        self._broken_by: Exchange | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._fires_at = self._deadline = self.expires_at = expires_at
        self._sent_at = 0.0
        # From the request to the first byte of its answer; None until that byte has come.
        self._first_byte_ms: float | None = None
        self._request_size = 0
        self._was_idle = False
        self.usable = False

    async def exchange(self, request: bytes, deadline: float) -> Exchange | None:
        """None as in `Done`. Cancelling closes the connection."""
        if not self.usable:
            return self._broken_by or failed(Outcome.CONNECT_ERROR)
        waiter: asyncio.Future[Exchange | None] = self._loop.create_future()
        done = partial(_set_result, waiter)
        self.begin(request, deadline, done)
        try:
            return await waiter
        except BaseException:
            # After its end, the connection may be in use for another request.
            if self._done is done:
                self._done = None
                self.abort()
            raise

    def begin(self, request: bytes, deadline: float, done: Done) -> None:
        """As `exchange` if the connection is usable, without a coroutine; the loop calls `done`."""
        assert self._transport is not None
        self._answer.begin()
        self._first_byte_ms = None
        self._deadline = deadline
        self._request_size = len(request)
        self._sent_at = perf_counter()
        self._done = done
        self._transport.write(request)
        if self._timer is None or deadline < self._fires_at:
            self._set_timer(min(deadline, self.expires_at))

    def abort(self) -> None:
        self.usable = False
        if self._transport is not None:
            self._transport.abort()
        self._pool.forget(self)

    # Callbacks of the loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports implement the interface but do not inherit from it.
        self._transport = cast(asyncio.Transport, transport)
        self.usable = True

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, count: int) -> None:
        if self._done is None:
            # Data without a request: the next request must not take it for its answer.
            self._broken_by = failed(Outcome.PROTOCOL_ERROR)
            self.abort()
            return
        answer = self._answer
        in_body = answer.status
        if self._first_byte_ms is None:
            self._first_byte_ms = (perf_counter() - self._sent_at) * 1000
        try:
            answer.feed(self._buffer[:count])
        except BadAnswer:
            self._fail(failed(Outcome.PROTOCOL_ERROR))
            return
        if answer.over:
            self._finish()
        elif answer.status and not in_body:
            self._deadline = min(self._deadline, perf_counter() + BODY_TIMEOUT_SECONDS)
            self._set_timer(self._deadline)

    def connection_lost(self, error: Exception | None) -> None:
        self.usable = False
        self._transport = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._pool.forget(self)
        # A TLS error may come after the client's handshake, in TLS 1.3.
        broke = failed(Outcome.CONNECT_ERROR, error)
        if self._done is None:
            self._broken_by = self._broken_by or broke
        elif self._first_byte_ms is None:
            self._fail(broke)
        else:
            try:
                self._answer.connection_ended(is_reset=error is not None)
            except BadAnswer:
                self._fail(failed(Outcome.PROTOCOL_ERROR))
            else:
                self._finish()
        self._answer.release()

    def _finish(self) -> None:
        answer, transport = self._answer, self._transport
        done, self._done = self._done, None
        exchange: Exchange | None = Exchange(
            (perf_counter() - self._sent_at) * 1000,
            Timings(None, None, None, self._first_byte_ms),
            None,
            answer.status,
            tuple(answer.headers),
            bytes(answer.body),
            answer.truncated,
        )
        if (
            answer.reusable
            and transport is not None
            and not transport.get_write_buffer_size()
            and (self._request_size <= _SENT_AT_ONCE or self._is_acknowledged(transport))
        ):
            self._was_idle = True
            self._pool.keep(self)
        else:
            self.abort()
            # Such a 408 answers the idle connection, not the request that crossed it.
            if self._was_idle and answer.status == _REQUEST_TIMEOUT:
                exchange = None
        assert done is not None
        # Last, because `done` may send the next request over this connection.
        done(exchange)

    def _fail(self, exchange: Exchange) -> None:
        done, self._done = self._done, None
        self.abort()
        exchange.duration_ms = (perf_counter() - self._sent_at) * 1000
        assert done is not None
        done(None if self._was_idle and exchange.fault in _BROKE else exchange)

    def _is_acknowledged(self, transport: asyncio.Transport) -> bool:
        """Whether the peer's kernel has acknowledged every byte of the request.

        A peer that answers after it has read the whole request acknowledges it along with the
        answer. Under TLS the loop counts only bytes that are not encrypted yet.
        """
        if self.receiver[0] == "https":
            return False
        try:
            sock = transport.get_extra_info("socket")
            (size,) = unpack("i", ioctl(sock.fileno(), TIOCOUTQ, bytes(4)))
        except OSError:
            # Not every system supports TIOCOUTQ.
            return False
        return not size

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
        due = self.expires_at if self._done is None else self._deadline
        if perf_counter() < due:
            self._set_timer(due)
        elif self._done is None:
            self.abort()
        elif self._answer.status:
            self._answer.cut()
            self._finish()
        else:
            self._fail(failed(Outcome.TIMEOUT))


class ConnectionPool:
    """Keeps idle connections for the next request to the same receiver.

    The most recently used connection is taken first; beyond `most`, an old one is closed.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0
        self._closed = False
        # In the order in which the first connection of each receiver became idle.
        self._idle: dict[Receiver, list[HttpConnection]] = {}

    def take(self, receiver: Receiver) -> HttpConnection | None:
        while connections := self._idle.get(receiver):
            connection = connections.pop()
            self._count -= 1
            if not connections:
                del self._idle[receiver]
            if connection.usable and perf_counter() < connection.expires_at:
                return connection
            connection.abort()
        return None

    def keep(self, connection: HttpConnection) -> None:
        if self._closed or perf_counter() >= connection.expires_at:
            connection.abort()
            return
        self._idle.setdefault(connection.receiver, []).append(connection)
        self._count += 1
        if self._count > self._most:
            next(iter(self._idle.values()))[0].abort()

    def forget(self, connection: HttpConnection) -> None:
        """Drops a connection that has ended; it need not be in the pool."""
        connections = self._idle.get(connection.receiver, [])
        if connection in connections:
            connections.remove(connection)
            self._count -= 1
            if not connections:
                del self._idle[connection.receiver]

    def close(self) -> None:
        """A connection in use is closed when `keep` gets it."""
        self._closed = True
        for connections in list(self._idle.values()):
            for connection in list(connections):
                connection.abort()


def failed(fault: Outcome, error: Exception | None = None) -> Exchange:
    """An exchange without an answer; an error of TLS has a fault of its own."""
    if isinstance(error, ssl.SSLError):
        return Exchange(0.0, Timings(), Outcome.TLS_ERROR, tls_fault=fault_in(error))
    return Exchange(0.0, Timings(), fault)


def _set_result(waiter: "asyncio.Future[Exchange | None]", exchange: Exchange | None) -> None:
    # The future is already done if the waiting task has just been cancelled.
    if not waiter.done():
        waiter.set_result(exchange)
