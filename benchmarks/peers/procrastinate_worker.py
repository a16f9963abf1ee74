"""Creates the tables of Procrastinate, then runs its worker."""

import asyncio
import sys

import aiohttp

from benchmarks.peers.procrastinate_app import app, sessions
from benchmarks.peers.signing import TIMEOUT_SECONDS

CONCURRENCY = 50


async def work() -> None:
    timeout = aiohttp.ClientTimeout(total=TIMEOUT_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session, app.open_async():
        sessions.append(session)
        await app.run_worker_async(concurrency=CONCURRENCY, delete_jobs="never")


async def set_up() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


if __name__ == "__main__":
    asyncio.run(set_up() if sys.argv[1:] == ["set-up"] else work())
