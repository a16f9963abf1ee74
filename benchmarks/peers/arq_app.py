"""arq on Redis, with the httpx client of its own examples."""

import asyncio
import time
from collections.abc import Sequence
from typing import Any

import httpx
from arq import create_pool
from arq.connections import ArqRedis, RedisSettings

from benchmarks.peers.signing import (
    BROKER,
    TIMEOUT_SECONDS,
    URL,
    Job,
    due_times,
    pieces,
    signed_headers,
)

# A log line for every job would dominate the measurement.
QUIET = {"version": 1, "loggers": {"arq": {"level": "WARNING"}}}
SETTINGS = RedisSettings.from_dsn(BROKER or "redis://127.0.0.1")


async def deliver(ctx: dict[str, Any], event_id: str, body: str) -> None:
    content = body.encode()
    answer = await ctx["client"].post(
        URL, content=content, headers=signed_headers(event_id, content)
    )
    answer.raise_for_status()


async def startup(ctx: dict[str, Any]) -> None:
    ctx["client"] = httpx.AsyncClient(timeout=TIMEOUT_SECONDS, trust_env=False)


async def shutdown(ctx: dict[str, Any]) -> None:
    await ctx["client"].aclose()


class WorkerSettings:
    """Its default poll delay of half a second would dominate the measurement."""

    functions = (deliver,)
    on_startup = startup
    on_shutdown = shutdown
    redis_settings = SETTINGS
    max_jobs = 50
    poll_delay = 0.01
    keep_result = 0


def enqueue(jobs: Sequence[Job], rate: float) -> dict[str, float]:
    return asyncio.run(_enqueue(jobs, rate))


async def _enqueue(jobs: Sequence[Job], rate: float) -> dict[str, float]:
    pool = await create_pool(SETTINGS)
    began: dict[str, float] = {}
    if rate:
        for job, wait in zip(jobs, due_times(len(jobs), rate), strict=True):
            await asyncio.sleep(wait)
            await _put(pool, job, began)
    else:
        for some in pieces(jobs):
            await asyncio.gather(*(_put(pool, job, began) for job in some))
    await pool.aclose()
    return began


async def _put(pool: ArqRedis, job: Job, began: dict[str, float]) -> None:
    event_id, body = job
    began[event_id] = time.time()
    await pool.enqueue_job("deliver", event_id, body)
