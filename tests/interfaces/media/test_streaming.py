"""What goes wrong in the middle of a download: clients that stand still, files that break off."""

import asyncio
import gc
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
import uvicorn
from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from cuepost.adapters.media.local import LocalFile
from cuepost.bootstrap.guarded_protocol import guarded_connections
from cuepost.bootstrap.inbound_guard import InboundGuard, InboundLimits, InboundMetrics
from cuepost.domain.artifact import Artifact
from cuepost.interfaces.media.app import media_routes
from cuepost.interfaces.media.streaming import Streamer
from tests.application.harness import BASE_URL, Harness

SIZE = 64 * 1024 * 1024
KEY = "exports/large.mp4"
PATIENCE_SECONDS = 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Larger than all that sockets keep for clients that do not read."""
    path = tmp_path / "media" / KEY
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, SIZE)
    return path


async def token_of(harness: Harness) -> str:
    project = await harness.project()
    artifact = Artifact("video", "large.mp4", KEY, "video/mp4", SIZE)
    await harness.report(harness.milestone(project, artifacts=(artifact,)))
    found = await harness.see(harness.service.results.get, harness.owner, project.id)
    return found.links[0].url.removeprefix(f"{BASE_URL}/media/")


def straight() -> Any:
    """The protocol of the service, which lets the system send files."""
    return guarded_connections(InboundGuard(InboundLimits(), InboundMetrics(CollectorRegistry())))


@pytest.fixture(params=[lambda: HttpToolsProtocol, straight], ids=["in pieces", "straight"])
def protocol(request: pytest.FixtureRequest) -> type[HttpToolsProtocol]:
    chosen: type[HttpToolsProtocol] = request.param()
    return chosen


@asynccontextmanager
async def served(
    harness: Harness, streamer: Streamer, protocol: type[HttpToolsProtocol]
) -> AsyncIterator[int]:
    """The interface behind a real server; its port."""
    assert harness.service.downloads is not None
    app = Starlette(routes=media_routes(harness.service, streamer))
    config = uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with asyncio.TaskGroup() as group:
            serving = group.create_task(server.serve(sockets=[listener]))
            yield listener.getsockname()[1]
            server.force_exit = server.should_exit = True
            await serving


async def opened(port: int, token: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=65_536)
    writer.write(f"GET /media/{token} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n".encode())
    return reader, writer


def is_open(file: Path) -> bool:
    links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return str(file) in [os.readlink(each) for each in links]


async def wait_until_closed(file: Path) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while is_open(file):
            await anyio.lowlevel.checkpoint()


async def test_a_client_that_stands_still_is_let_go(
    sqlite_harness: Harness,
    file: Path,
    protocol: type[HttpToolsProtocol],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "cuepost.media")
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(stall_seconds=0.1), protocol) as port:
        reader, writer = await opened(port, token)
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        await wait_until_closed(file)
        writer.close()
    assert "event=download_stalled" in caplog.messages


async def test_a_file_that_is_cut_off_meanwhile_breaks_the_download_off(
    sqlite_harness: Harness,
    file: Path,
    protocol: type[HttpToolsProtocol],
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        reader, writer = await opened(port, token)
        await reader.readline()
        os.truncate(file, SIZE // 2)
        with anyio.fail_after(PATIENCE_SECONDS):
            rest = await reader.read(-1)
        writer.close()
    assert len(rest) < SIZE
    assert "event=media_cut_off" in caplog.messages


async def test_a_file_that_is_replaced_meanwhile_is_sent_as_it_was(
    sqlite_harness: Harness, file: Path, protocol: type[HttpToolsProtocol]
) -> None:
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        reader, writer = await opened(port, token)
        await reader.readuntil(b"\r\n\r\n")
        other = file.with_name("other")
        other.write_bytes(b"another film")
        other.rename(file)
        with anyio.fail_after(PATIENCE_SECONDS):
            content = await reader.read(-1)
        writer.close()
    assert content == bytes(SIZE)


async def test_stalled_clients_do_not_delay_others(
    sqlite_harness: Harness, file: Path, protocol: type[HttpToolsProtocol]
) -> None:
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        idle = [await opened(port, token) for _ in range(20)]
        for reader, _ in idle:
            await reader.readuntil(b"\r\n\r\n")
        reader, writer = await opened(port, token)
        await reader.readuntil(b"\r\n\r\n")
        with anyio.fail_after(PATIENCE_SECONDS):
            assert len(await reader.read(-1)) == SIZE
        for _, each in (*idle, (reader, writer)):
            each.close()
        await wait_until_closed(file)


async def test_a_client_that_goes_away_is_no_fault(
    sqlite_harness: Harness,
    file: Path,
    protocol: type[HttpToolsProtocol],
    caplog: pytest.LogCaptureFixture,
) -> None:
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        reader, writer = await opened(port, token)
        await reader.readuntil(b"\r\n\r\n")
        writer.transport.abort()
        await wait_until_closed(file)
    assert [each.message for each in caplog.records if each.levelname != "INFO"] == []


async def test_a_client_that_says_no_more_while_it_stands_still_is_let_go_at_once(
    sqlite_harness: Harness, file: Path, protocol: type[HttpToolsProtocol]
) -> None:
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        reader, writer = await opened(port, token)
        await reader.readuntil(b"\r\n\r\n")
        writer.write_eof()
        await wait_until_closed(file)
        writer.close()


async def test_the_system_sends_the_file_and_the_connection_serves_on(
    sqlite_harness: Harness, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(LocalFile, "read")
    parts = [bytes([number]) * 3_000_000 for number in range(1, 4)]
    with file.open("r+b") as written:
        written.write(b"".join(parts))
    token = await token_of(sqlite_harness)
    async with served(sqlite_harness, Streamer(), straight()) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number, part in enumerate(parts):
            wanted = f"range: bytes={number * len(part)}-{(number + 1) * len(part) - 1}"
            writer.write(f"GET /media/{token} HTTP/1.1\r\nhost: a\r\n{wanted}\r\n\r\n".encode())
            with anyio.fail_after(PATIENCE_SECONDS):
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 206 ")
                assert await reader.readexactly(len(part)) == part
        writer.close()


async def test_requests_in_a_row_are_answered_in_their_order(
    sqlite_harness: Harness, file: Path, protocol: type[HttpToolsProtocol]
) -> None:
    token = await token_of(sqlite_harness)
    with file.open("r+b") as written:
        written.write(b"a" * 1_000 + b"b" * 1_000)
    async with served(sqlite_harness, Streamer(), protocol) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for part in ("0-999", "1000-1999"):
            head = f"GET /media/{token} HTTP/1.1\r\nhost: a\r\nrange: bytes={part}\r\n\r\n"
            writer.write(head.encode())
        for letter in (b"a", b"b"):
            with anyio.fail_after(PATIENCE_SECONDS):
                await reader.readuntil(b"\r\n\r\n")
                assert await reader.readexactly(1_000) == letter * 1_000
        writer.close()


async def test_an_answer_leaves_no_cycle_for_the_garbage_collector(
    sqlite_harness: Harness, protocol: type[HttpToolsProtocol]
) -> None:
    request = b"GET /media/unknown HTTP/1.1\r\nhost: a\r\n\r\n"
    gc.disable()
    try:
        before = answers_in_memory()
        async with served(sqlite_harness, Streamer(), protocol) as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            for _ in range(20):
                writer.write(request)
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
            left = answers_in_memory() - before
            writer.close()
    finally:
        gc.enable()
    # The connection keeps the last one, whose task may not be over yet.
    assert left <= 2


def answers_in_memory() -> int:
    return sum(isinstance(each, RequestResponseCycle) for each in gc.get_objects())
