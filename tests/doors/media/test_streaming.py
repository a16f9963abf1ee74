"""What goes wrong in the middle of a download: clients that stand still, files that break off."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
import uvicorn
from starlette.applications import Starlette

from cuepost.domain.artifact import Artifact
from cuepost.doors.media.app import media_routes
from cuepost.doors.media.streaming import Streamer
from tests.application.world import BASE_URL, World

SIZE = 64 * 1024 * 1024
KEY = "exports/large.mp4"
PATIENCE_SECONDS = 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Larger than all that sockets keep for those who do not read."""
    path = tmp_path / "media" / KEY
    path.parent.mkdir(parents=True)
    path.touch()
    os.truncate(path, SIZE)
    return path


async def token_of(world: World) -> str:
    project = await world.project()
    artifact = Artifact("video", "large.mp4", KEY, "video/mp4", SIZE)
    await world.report(world.milestone(project, artifacts=(artifact,)))
    found = await world.see(world.service.results.get, world.owner, project.id)
    return found.links[0].url.removeprefix(f"{BASE_URL}/media/")


@asynccontextmanager
async def served(world: World, streamer: Streamer) -> AsyncIterator[int]:
    """The door behind a real server; its port."""
    assert world.service.downloads is not None
    app = Starlette(routes=media_routes(world.service.downloads, streamer))
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off"))
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
    sqlite_world: World, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "cuepost.media")
    token = await token_of(sqlite_world)
    async with served(sqlite_world, Streamer(stall_seconds=0.1)) as port:
        reader, writer = await opened(port, token)
        assert (await reader.readline()) == b"HTTP/1.1 200 OK\r\n"
        await wait_until_closed(file)
        writer.close()
    assert "event=download_stalled" in caplog.messages


async def test_a_file_that_is_cut_off_meanwhile_breaks_the_download_off(
    sqlite_world: World, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    token = await token_of(sqlite_world)
    async with served(sqlite_world, Streamer()) as port:
        reader, writer = await opened(port, token)
        await reader.readline()
        os.truncate(file, SIZE // 2)
        with anyio.fail_after(PATIENCE_SECONDS):
            rest = await reader.read(-1)
        writer.close()
    assert len(rest) < SIZE
    assert "event=media_cut_off" in caplog.messages


async def test_a_file_that_is_replaced_meanwhile_is_sent_as_it_was(
    sqlite_world: World, file: Path
) -> None:
    token = await token_of(sqlite_world)
    async with served(sqlite_world, Streamer()) as port:
        reader, writer = await opened(port, token)
        await reader.readuntil(b"\r\n\r\n")
        other = file.with_name("other")
        other.write_bytes(b"another film")
        other.rename(file)
        with anyio.fail_after(PATIENCE_SECONDS):
            content = await reader.read(-1)
        writer.close()
    assert content == bytes(SIZE)


async def test_those_who_stand_still_do_not_hold_up_the_others(
    sqlite_world: World, file: Path
) -> None:
    token = await token_of(sqlite_world)
    async with served(sqlite_world, Streamer()) as port:
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
