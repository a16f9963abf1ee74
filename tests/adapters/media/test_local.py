"""Media on disk: files are read warm or cold, and written whole or not at all."""

import asyncio
import os
import socket
from io import BytesIO
from pathlib import Path
from threading import Event

import anyio
import pytest

from cuepost.adapters.media.local import LocalFile, LocalMedia
from cuepost.domain.artifact import Artifact

PATIENCE_SECONDS = 20
CONTENT = bytes(range(256)) * 16
VIDEO = Artifact("video", "a.mp4", "exports/1/a.mp4", "video/mp4", len(CONTENT))


@pytest.fixture
def media(tmp_path: Path) -> LocalMedia:
    return LocalMedia(tmp_path / "media", "https://cuepost.example.com", [bytes(32)])


class Halting(BytesIO):
    """Gives a first piece, and the next one when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.go_on = Event(), Event()
        self._pieces = [b"first", b"second"]

    def read(self, size: int | None = -1, /) -> bytes:
        if len(self._pieces) == 1:
            self.asked.set()
            assert self.go_on.wait(PATIENCE_SECONDS)
        return self._pieces.pop(0) if self._pieces else b""


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


async def put(media: LocalMedia, content: bytes = CONTENT) -> None:
    await media.put(VIDEO, BytesIO(content), lambda _: None)


async def test_a_file_tells_its_size_its_time_and_its_version(
    media: LocalMedia, tmp_path: Path
) -> None:
    await put(media)
    path = tmp_path / "media" / VIDEO.key
    os.utime(path, (1_000_000_000.25, 1_000_000_000.25))
    file = await media.open(VIDEO.key)
    assert file is not None
    assert (file.size, file.modified_at.timestamp()) == (len(CONTENT), 1_000_000_000.25)
    file.close()
    first = file.version
    await put(media, CONTENT[:-1] + b"!")
    again = await media.open(VIDEO.key)
    assert again is not None
    assert again.version != first
    assert again.version.replace("-", "").isalnum()
    again.close()


async def test_a_time_before_all_times_is_the_beginning(media: LocalMedia, tmp_path: Path) -> None:
    await put(media)
    os.utime(tmp_path / "media" / VIDEO.key, (-5, -5))
    file = await media.open(VIDEO.key)
    assert file is not None
    assert file.modified_at.timestamp() == 0
    file.close()


@pytest.mark.parametrize("is_warm", [True, False])
async def test_parts_are_read_whether_or_not_the_disk_has_to_be_waited_for(
    media: LocalMedia, monkeypatch: pytest.MonkeyPatch, is_warm: bool
) -> None:
    def refused(*_: object) -> int:
        raise BlockingIOError

    if not is_warm:
        monkeypatch.setattr(os, "preadv", refused)
    await put(media)
    file = await media.open(VIDEO.key)
    assert file is not None
    assert await file.read(0, 10) == CONTENT[:10]
    assert await file.read(4_000, 1_000) == CONTENT[4_000:]
    assert await file.read(len(CONTENT), 10) == b""
    file.close()


async def test_who_gives_up_leaves_no_half_of_a_file(media: LocalMedia, tmp_path: Path) -> None:
    source = Halting()
    with anyio.fail_after(PATIENCE_SECONDS):
        async with asyncio.TaskGroup() as group:
            putting = group.create_task(media.put(VIDEO, source, lambda _: None))
            await asyncio.to_thread(source.asked.wait, PATIENCE_SECONDS)
            assert len(names_in(tmp_path)) == 1
            putting.cancel()
        source.go_on.set()
        while names_in(tmp_path):
            await anyio.lowlevel.checkpoint()
    assert await media.open(VIDEO.key) is None


async def fill(file: LocalFile, client: socket.socket) -> None:
    while await file.send(client.fileno(), 0, len(CONTENT)):
        pass


async def test_a_socket_gets_what_it_has_room_for(media: LocalMedia) -> None:
    await put(media)
    file = await media.open(VIDEO.key)
    assert file is not None
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        assert await file.send(ours.fileno(), 256, 512) == 512
        assert theirs.recv(1024) == CONTENT[256:768]
        assert await file.send(ours.fileno(), len(CONTENT), 512) == 0
        with pytest.raises(BlockingIOError):
            await fill(file, ours)
    file.close()


async def test_no_one_closes_a_file_while_a_thread_still_sends_it(
    media: LocalMedia, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go_on = Event(), Event()

    def slow(*_: object) -> int:
        begun.set()
        assert go_on.wait(PATIENCE_SECONDS)
        return 1

    monkeypatch.setattr(os, "sendfile", slow)
    await put(media)
    file = await media.open(VIDEO.key)
    assert file is not None
    async with asyncio.TaskGroup() as group:
        sending = group.create_task(file.send(0, 0, 1))
        assert await asyncio.to_thread(begun.wait, PATIENCE_SECONDS)
        for _ in range(3):
            sending.cancel()
            await anyio.lowlevel.checkpoint()
        assert not sending.done()
        go_on.set()
    assert sending.cancelled()
    file.close()
