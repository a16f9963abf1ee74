"""Media in a folder of this machine, which the service serves itself."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import BinaryIO, TypeVar

from cuepost.adapters.completion import run_to_completion
from cuepost.adapters.media.confined_folder import created_inside, open_inside, remove_inside
from cuepost.adapters.media.link_tokens import LinkTokens
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import MediaUnavailable
from cuepost.domain.instants import EPOCH, from_millis
from cuepost.domain.project import Project
from cuepost.ports.media import Grant, Progress

T = TypeVar("T")

THREADS = 4
PIECE = 1024 * 1024

logger = logging.getLogger("cuepost.media")


class LocalMedia:
    """Files are read in a separate thread pool, so that a slow disk blocks nothing else."""

    def __init__(self, root: Path, base_url: str, master_keys: Sequence[bytes]) -> None:
        self._root = root
        self._base_url = base_url
        self._tokens = LinkTokens(master_keys)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="media")

    async def link(
        self, project: Project, artifact: Artifact, now: datetime, expires_at: datetime
    ) -> str:
        grant = Grant(project.account_id, project.id, artifact.fingerprint, expires_at)
        return f"{self._base_url}/media/{self._tokens.write(grant)}"

    def grant(self, token: str) -> Grant | None:
        return self._tokens.read(token)

    async def open(self, key: str) -> "LocalFile | None":
        try:
            descriptor = await self._in_thread(lambda: open_inside(self._root, key))
        except OSError as error:
            logger.warning("event=media_missing key=%r cause=%s", key, type(error).__name__)
            return None
        return LocalFile(descriptor, self._threads)

    async def put(self, artifact: Artifact, source: BinaryIO, progress: Progress) -> None:
        draft, given_up = f".{artifact.fingerprint.hex()}.{os.getpid()}", Event()

        def write() -> None:
            with created_inside(self._root, artifact.key, draft) as descriptor:
                while piece := source.read(PIECE):
                    if given_up.is_set():
                        raise InterruptedError
                    _write_all(descriptor, piece)
                    progress(len(piece))

        try:
            await self._in_thread(write)
        except asyncio.CancelledError:
            given_up.set()
            raise

    async def remove(self, key: str) -> None:
        try:
            await self._in_thread(lambda: remove_inside(self._root, key))
        except OSError as error:
            logger.warning("event=media_not_removed key=%r cause=%s", key, type(error).__name__)
            raise MediaUnavailable from error

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)


class LocalFile:
    def __init__(self, descriptor: int, threads: ThreadPoolExecutor) -> None:
        found = os.fstat(descriptor)
        self._descriptor = descriptor
        self._threads = threads
        self.size = found.st_size
        self.modified_at = max(from_millis(found.st_mtime_ns // 1_000_000), EPOCH)
        self.version = f"{found.st_ino:x}-{found.st_size:x}-{found.st_mtime_ns:x}"

    async def read(self, start: int, count: int) -> bytes:
        at_once = self._read_at_once(start, count)
        if at_once is not None:
            return at_once
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, os.pread, self._descriptor, count, start)

    async def send(self, descriptor: int, start: int, count: int) -> int:
        sending = asyncio.get_running_loop().run_in_executor(
            self._threads, os.sendfile, descriptor, self._descriptor, start, count
        )
        # A descriptor that is closed while the thread uses it may be reused for another client.
        return await run_to_completion(sending)

    def _read_at_once(self, start: int, count: int) -> bytes | None:
        """Reads from the page cache; None if the disk would have to be read.

        Most files are cached when they are fetched, and a thread costs more than copying a piece.
        """
        buffer = bytearray(count)
        try:
            got = os.preadv(self._descriptor, [buffer], start, os.RWF_NOWAIT)
        except OSError:
            return None
        return bytes(memoryview(buffer)[:got]) if got else None

    def close(self) -> None:
        os.close(self._descriptor)


def _write_all(descriptor: int, piece: bytes) -> None:
    left = memoryview(piece)
    while left:
        left = left[os.write(descriptor, left) :]
