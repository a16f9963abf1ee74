"""A process of its own that opens or migrates a store; see `test_upgrading`.

Usage: python -m tests.migrations.opener URL [MIGRATIONS]
"""

import asyncio
import os
import signal
import sys
from itertools import count
from pathlib import Path

import sqlalchemy as sa

from cuepost.adapters.storage import schema, upgrading
from cuepost.adapters.storage.migrations import old_history
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock


async def open_and_close(url: str) -> None:
    clock = SystemClock()
    if url.startswith("postgresql"):
        postgres = PostgresStore(url)
        await postgres.migrate(clock.now(), with_downtime=True)
        await postgres.close()
    else:
        sqlite = SqliteStore(Path(url.removeprefix("sqlite:///")), clock)
        await sqlite.open()
        await sqlite.check()
        await sqlite.close()


def die_in_step(number: int) -> None:
    """Before that step of moving old history is committed; steps are small."""
    move_some, steps = upgrading.move_some, count(1)

    def deadly(connection: sa.Connection) -> str | None:
        reported = move_some(connection)
        if next(steps) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        return reported

    upgrading.move_some = deadly
    old_history.ROWS_AT_ONCE = 5


if __name__ == "__main__":
    if step := os.environ.get("DIE_IN_STEP"):
        die_in_step(int(step))
    if len(sys.argv) > 2:
        schema.MIGRATIONS = Path(sys.argv[2])
    asyncio.run(open_and_close(sys.argv[1]))
