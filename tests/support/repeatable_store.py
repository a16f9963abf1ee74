"""The embedded store without threads, so that a run repeats, and without waits for the disk."""

from pathlib import Path

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.ports.system import Clock
from tests.support.jumping_loop import AtOnce


class RepeatableStore(SqliteStore):
    def __init__(self, path: Path, clock: Clock) -> None:
        super().__init__(path, clock)
        self._threads = self._ledger.threads = AtOnce()
        self._ledger.sync = _not_at_all

    async def open(self) -> None:
        await super().open()
        self._require_open().execute("PRAGMA synchronous=OFF")


def _not_at_all(_descriptor: int) -> None: ...
