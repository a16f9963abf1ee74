"""A process of its own that opens or migrates a store; see `test_upgrading`.

Usage: python -m tests.migrations.opener URL [MIGRATIONS]
"""

import asyncio
import sys
from pathlib import Path

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock


async def open_and_close(url: str) -> None:
    clock = SystemClock()
    if url.startswith("postgresql"):
        postgres = PostgresStore(url)
        await postgres.migrate(clock.now())
        await postgres.close()
    else:
        sqlite = SqliteStore(Path(url.removeprefix("sqlite:///")), clock)
        await sqlite.open()
        await sqlite.check()
        await sqlite.close()


if __name__ == "__main__":
    if len(sys.argv) > 2:
        schema.MIGRATIONS = Path(sys.argv[2])
    asyncio.run(open_and_close(sys.argv[1]))
