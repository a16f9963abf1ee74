"""A wire to PostgreSQL whose open connections can fall silent, as behind a firewall."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit


@dataclass
class SilentWire:
    """`opened` counts the connections; those up to `silent` pass nothing on, and stay open."""

    host: str
    port: int
    opened: int = 0
    silent: int = 0

    def silence(self) -> None:
        self.silent = self.opened

    async def connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.opened += 1
        number = self.opened
        theirs, ours = await asyncio.open_connection(self.host, self.port)
        passing = [self._pass_on(number, reader, ours), self._pass_on(number, theirs, writer)]
        with suppress(ConnectionError):
            await asyncio.gather(*passing)
        for end in (writer, ours):
            end.transport.abort()

    async def _pass_on(
        self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(65_536):
            if number > self.silent:
                writer.write(data)
                await writer.drain()
        raise ConnectionError


@asynccontextmanager
async def silent_wire(url: str) -> AsyncIterator[tuple[SilentWire, str]]:
    """The wire, and the address of the database behind it."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    wire = SilentWire(parts.hostname, parts.port)
    async with await asyncio.start_server(wire.connect, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        user = parts.netloc.rpartition("@")[0]
        yield wire, urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{port}"))
