"""A lock with one holder per machine, on a file that is never deleted."""

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from cuepost.ports.store import StoreUnavailable
from cuepost.ports.system import Clock

TIMEOUT_SECONDS = 30.0
POLL_SECONDS = 0.002


class MachineLock:
    """The kernel releases it when its holder dies, for whatever reason."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._descriptor: int | None = None

    async def __aenter__(self) -> None:
        await wait_for_turn(self._clock, self.take)

    async def __aexit__(self, *_: object) -> None:
        self.release()

    def take(self) -> bool:
        """Return False if another process holds it."""
        if self._descriptor is None:
            self._descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        assert self._descriptor is not None
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


async def wait_for_turn(clock: Clock, took: Callable[[], bool]) -> None:
    """Polls until `took` returns True; other tasks run between the tries."""
    waited = 0.0
    while not took():
        if waited >= TIMEOUT_SECONDS:
            raise StoreUnavailable("another process keeps the embedded store locked")
        await clock.wait(POLL_SECONDS)
        waited += POLL_SECONDS
