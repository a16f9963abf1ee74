"""A process of its own that writes to an embedded store; see `test_sqlite_processes`.

Usage: python -m tests.conformance.sqlite_writer PATH NAME TIMES
It says "wrote N" after each commit. With TIMES 0 it says "inside", in the middle of a transaction,
and stays there.
"""

import asyncio
import os
import sys
import time
from pathlib import Path

import sqlalchemy as sa

from cuepost.adapters.storage.machine_lock import MachineLock
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.adapters.system_clock import SystemClock
from cuepost.ports.store import Transaction
from tests.support import core_statements

TURNS = "CREATE TABLE turns (writer TEXT, number INTEGER, begun INTEGER, ended INTEGER)"

MARKER = "held"


class WatchedLock(MachineLock):
    """Fails if someone else has it too: only one of them can make the marker file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, SystemClock())
        self._marker = path.with_name(MARKER)

    async def __aenter__(self) -> None:
        await super().__aenter__()
        os.close(os.open(self._marker, os.O_CREAT | os.O_EXCL))

    async def __aexit__(self, *details: object) -> None:
        self._marker.unlink()
        await super().__aexit__(*details)


async def take_turn(transaction: Transaction, writer: str, number: int) -> None:
    """Write down when the turn began and when it ended, with some work in between."""
    assert isinstance(transaction, RecordsTransaction)
    begun = time.monotonic_ns()
    turn = {"writer": writer, "number": number, "begun": begun}
    insert = sa.text("INSERT INTO turns VALUES (:writer, :number, :begun, NULL)")
    await core_statements.run(transaction.session, insert.bindparams(**turn))
    last = "WHERE writer = :writer AND number = :number"
    update = sa.text(f"UPDATE turns SET ended = :ended {last}")
    ended = time.monotonic_ns()
    await core_statements.run(
        transaction.session, update.bindparams(ended=ended, writer=writer, number=number)
    )


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


async def write(path: Path, writer: str, times: int) -> None:
    store = SqliteStore(path, SystemClock())
    store._machine_lock = WatchedLock(path.with_name(path.name + ".lock"))
    await store.open()
    for number in range(times):
        async with store.transaction() as transaction:
            await take_turn(transaction, writer, number)
        say(f"wrote {number}")
    await store.close()


async def stay_inside(path: Path, writer: str) -> None:
    store = SqliteStore(path, SystemClock())
    await store.open()
    async with store.transaction() as transaction:
        await take_turn(transaction, writer, 0)
        say("inside")
        await asyncio.get_running_loop().create_future()


if __name__ == "__main__":
    place, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    asyncio.run(write(place, name, count) if count else stay_inside(place, name))
