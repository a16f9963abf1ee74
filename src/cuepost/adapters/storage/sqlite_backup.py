"""Copies the embedded store as of one moment, while other connections go on writing to it.

That moment is the beginning of a read transaction, which blocks no writer. Connections are opened,
begun and closed under the machine lock, as everywhere else.
"""

import asyncio
import os
import sqlite3
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

from cuepost.adapters.completion import run_to_completion
from cuepost.adapters.storage.machine_lock import MachineLock
from cuepost.ports.system import Clock

PAGES_AT_ONCE = 4_096
BUSY_SECONDS = 5.0

# Gets the number of copied pages and the total.
Progress = Callable[[int, int], None]


class CannotBackUp(Exception):
    """No copy was made; the message says why."""


async def back_up(store: Path, target: Path, clock: Clock, progress: Progress) -> int:
    """Copies to a file that must not exist yet, completely or not at all; its size in bytes."""
    _require_places(store, target)
    try:
        async with _snapshot(store, clock) as source:
            with _temporary_beside(target) as partial:
                await _copied(source, partial, progress)
                return _publish(partial, target)
    except sqlite3.Error as error:
        raise CannotBackUp(f"The store could not be copied: {error}.") from error


def _require_places(store: Path, target: Path) -> None:
    if not store.is_file():
        raise CannotBackUp(f"There is no store to copy: {store} does not exist.")
    if os.path.lexists(target):
        raise _taken(target)
    if not target.parent.is_dir():
        raise CannotBackUp(f"The folder of the copy does not exist: {target.parent}.")


@asynccontextmanager
async def _snapshot(store: Path, clock: Clock) -> AsyncIterator[sqlite3.Connection]:
    """A connection that keeps seeing the store as it is now."""
    lock = MachineLock(store.with_name(store.name + ".lock"), clock)
    try:
        async with lock:
            source = _connect(store)
        try:
            async with lock:
                source.execute("PRAGMA query_only=ON")
                source.execute("BEGIN")
                source.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            yield source
        finally:
            async with lock:
                source.close()
    finally:
        lock.close()


@contextmanager
def _temporary_beside(target: Path) -> Iterator[Path]:
    """A temporary file that only its owner can read."""
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    os.close(descriptor)
    partial = Path(name)
    try:
        yield partial
    finally:
        partial.unlink(missing_ok=True)


async def _copied(source: sqlite3.Connection, partial: Path, progress: Progress) -> None:
    stopped = threading.Event()

    def look(_status: int, remaining: int, total: int) -> None:
        if stopped.is_set():
            raise InterruptedError
        progress(total - remaining, total)

    await run_to_completion(asyncio.to_thread(_copy, source, partial, look), stopped.set)


def _copy(source: sqlite3.Connection, partial: Path, look: Callable[[int, int, int], None]) -> None:
    with closing(_connect(partial)) as copy:
        # An incomplete copy is thrown away, so it needs no journal.
        copy.execute("PRAGMA journal_mode=OFF")
        copy.execute("PRAGMA synchronous=OFF")
        source.backup(copy, pages=PAGES_AT_ONCE, progress=look)
    with closing(_connect(partial)) as copy:
        # Without a log beside it, so that the copy can be read from a read-only folder.
        copy.execute("PRAGMA journal_mode=DELETE")
        [(verdict,)] = copy.execute("PRAGMA quick_check(1)")
    if verdict != "ok":
        raise CannotBackUp(f"The store is damaged, so no copy of it is kept: {verdict}.")
    _sync(partial)


def _publish(partial: Path, target: Path) -> int:
    try:
        os.link(partial, target)
    except FileExistsError:
        raise _taken(target) from None
    except OSError:
        # Not every file system supports hard links.
        partial.rename(target)
    _sync(target.parent)
    return target.stat().st_size


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _connect(path: Path) -> sqlite3.Connection:
    uri = f"{path.absolute().as_uri()}?mode=rw"
    return sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, check_same_thread=False, isolation_level=None
    )


def _taken(target: Path) -> CannotBackUp:
    return CannotBackUp(f"{target} already exists; a backup never replaces a file.")
