"""Procrastinate on PostgreSQL, with one aiohttp session in an asynchronous worker."""

import asyncio
import time
from collections.abc import Sequence

import aiohttp
from procrastinate import App, PsycopgConnector

from benchmarks.peers.signing import (
    BROKER,
    URL,
    Job,
    due_times,
    pieces,
    signed_headers,
)

app = App(connector=PsycopgConnector(conninfo=BROKER))
sessions: list[aiohttp.ClientSession] = []


@app.task(name="deliver")
async def deliver(event_id: str, body: str) -> None:
    content = body.encode()
    headers = signed_headers(event_id, content)
    async with sessions[0].post(URL, data=content, headers=headers) as answer:
        await answer.read()
        answer.raise_for_status()


def enqueue(jobs: Sequence[Job], rate: float) -> dict[str, float]:
    return asyncio.run(_enqueue(jobs, rate))


async def _enqueue(jobs: Sequence[Job], rate: float) -> dict[str, float]:
    began: dict[str, float] = {}
    async with app.open_async():
        if rate:
            for (event_id, body), wait in zip(jobs, due_times(len(jobs), rate), strict=True):
                await asyncio.sleep(wait)
                began[event_id] = time.time()
                await deliver.defer_async(event_id=event_id, body=body)
        else:
            for some in pieces(jobs):
                now = time.time()
                began.update((event_id, now) for event_id, _ in some)
                await deliver.batch_defer_async(
                    *({"event_id": event_id, "body": body} for event_id, body in some)
                )
    return began
