"""A receiver that does as a script says with every connection, however badly."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import cast

OK = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"

LONGEST_WAIT_SECONDS = 20.0


class PeerGone(Exception):
    """The client has ended the connection, so that the script has come to its end."""


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    line: str
    headers: tuple[tuple[str, str], ...]
    body: bytes

    def header(self, name: str) -> str:
        [value] = [value for given, value in self.headers if given == name]
        return value


class Peer(asyncio.Protocol):
    """One connection, seen from the server; the script reads and writes as it likes."""

    def __init__(self, server: "FaultServer") -> None:
        self._server = server
        self._data = bytearray()
        self._changed = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self.gone = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports have the interface without the base class.
        self.transport = cast(asyncio.Transport, transport)
        self._server.accepted(self)

    def data_received(self, data: bytes) -> None:
        self._data += data
        self._changed.set()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.gone.set()
        self._changed.set()
        self._writable.set()

    def pause_writing(self) -> None:
        self._writable.clear()

    def resume_writing(self) -> None:
        self._writable.set()

    async def request(self) -> ReceivedRequest:
        """The next one, whole."""
        return await self.with_body(await self.request_without_body())

    async def request_without_body(self) -> ReceivedRequest:
        head = await self._read_past(b"\r\n\r\n")
        line, *rest = head.decode("ascii").removesuffix("\r\n\r\n").split("\r\n")
        headers = tuple((name, value) for name, _, value in (text.partition(": ") for text in rest))
        return ReceivedRequest(line, headers, b"")

    async def with_body(self, request: ReceivedRequest) -> ReceivedRequest:
        body = await self._read(int(request.header("content-length")))
        request = ReceivedRequest(request.line, request.headers, body)
        self._server.requests.append(request)
        return request

    async def request_head(self) -> bytes:
        return await self._read_past(b"\r\n\r\n")

    @property
    def unread(self) -> bytes:
        return bytes(self._data)

    async def some_bytes(self) -> bytes:
        while not self._data:
            await self._more()
        return await self._read(len(self._data))

    def send(self, data: bytes) -> None:
        if self.gone.is_set():
            raise PeerGone
        self.transport.write(data)

    async def send_in_pieces(self, pieces: Iterable[bytes]) -> None:
        """With a round of the loop after each, so that the client reads them one by one."""
        for piece in pieces:
            self.send(piece)
            await self.gone_within(0)

    async def send_endlessly(self, data: bytes) -> None:
        while True:
            self.send(data)
            self._server.bytes_sent += len(data)
            await self._writable.wait()
            # Without this the loop would never read that the peer has gone.
            await self.gone_within(0)

    async def drip(self, data: bytes, seconds: float) -> None:
        """A byte at a time, over and over, until the client has had enough."""
        while True:
            for position in range(len(data)):
                self.send(data[position : position + 1])
                if await self.gone_within(seconds):
                    return

    async def gone_within(self, seconds: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self.gone.wait(), seconds)
        return self.gone.is_set()

    async def wait_until_gone(self) -> None:
        assert await self.gone_within(LONGEST_WAIT_SECONDS), "the client has not closed"

    async def close(self) -> None:
        """Politely: what was sent arrives, then the end."""
        self.transport.close()
        await self.wait_until_gone()

    async def half_close(self) -> None:
        """Says no more, but goes on listening; TLS knows no such thing."""
        if not self.transport.can_write_eof():
            await self.close()
        elif not self.gone.is_set():
            self.transport.write_eof()

    def reset(self) -> None:
        """What the client sees is `connection reset by peer`."""
        connection = self.transport.get_extra_info("socket")
        if self.gone.is_set() or connection is None:
            raise PeerGone
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    async def _read_past(self, mark: bytes) -> bytes:
        while mark not in self._data:
            await self._more()
        return await self._read(self._data.index(mark) + len(mark))

    async def _read(self, count: int) -> bytes:
        while len(self._data) < count:
            await self._more()
        read = bytes(self._data[:count])
        del self._data[:count]
        return read

    async def _more(self) -> None:
        if self.gone.is_set():
            raise PeerGone
        self._changed.clear()
        await asyncio.wait_for(self._changed.wait(), LONGEST_WAIT_SECONDS)


Script = Callable[[Peer], Awaitable[None]]


@dataclass
class FaultServer:
    script: Script
    scripts: asyncio.TaskGroup
    port: int = 0
    bytes_sent: int = 0
    requests: list[ReceivedRequest] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    names_asked_for: list[str | None] = field(default_factory=list)
    _running: list[asyncio.Task[None]] = field(default_factory=list)

    def accepted(self, peer: Peer) -> None:
        self.peers.append(peer)
        self._running.append(self.scripts.create_task(self._run(peer)))

    def stop(self) -> None:
        for peer in self.peers:
            peer.transport.abort()
        for task in self._running:
            task.cancel()

    async def _run(self, peer: Peer) -> None:
        with suppress(PeerGone):
            await self.script(peer)


@asynccontextmanager
async def fault_server(
    script: Script, host: str = "127.0.0.1", port: int = 0, tls: ssl.SSLContext | None = None
) -> AsyncIterator[FaultServer]:
    """Listens while the block runs; an error in a script comes out of it."""
    loop = asyncio.get_running_loop()
    async with asyncio.TaskGroup() as scripts:
        server = FaultServer(script, scripts)
        if tls is not None:
            tls.sni_callback = lambda _, name, __: server.names_asked_for.append(name)
        listener = await loop.create_server(lambda: Peer(server), host, port, ssl=tls)
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:
            listener.close()
            server.stop()
            await listener.wait_closed()


def answering(answer: bytes = OK) -> Script:
    """Gives every request the same answer and keeps the connection."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            peer.send(answer)

    return script


def answering_once(answer: bytes) -> Script:
    """Gives one answer, then closes."""

    async def script(peer: Peer) -> None:
        await peer.request()
        peer.send(answer)
        await peer.close()

    return script


def refusing_handshake(context: ssl.SSLContext) -> Script:
    """Shakes actions as OpenSSL does, and says why not; asyncio's servers just close."""

    async def script(peer: Peer) -> None:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        while True:
            incoming.write(await peer.some_bytes())
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                peer.send(outgoing.read())
            except ssl.SSLError:
                peer.send(outgoing.read())
                break
        await peer.close()

    return script


async def silence(peer: Peer) -> None:
    """Takes everything and never says a word."""
    await peer.wait_until_gone()


@contextmanager
def full_backlog(host: str = "127.0.0.1", port: int = 0) -> Iterator[int]:
    """The port of a listener that takes no more connections: further ones get no reply at all."""
    with ExitStack() as sockets:
        listener = sockets.enter_context(socket.socket())
        listener.bind((host, port))
        listener.listen(0)
        for _ in range(3):
            caller = sockets.enter_context(socket.socket())
            caller.setblocking(False)
            caller.connect_ex(listener.getsockname())
        yield listener.getsockname()[1]


def unused_port(host: str = "127.0.0.1") -> int:
    """No server listens there."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port
