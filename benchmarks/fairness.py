"""Whether healthy endpoints notice bad neighbours: one hangs, one drips, one has a long backlog.

The same load goes to the healthy ones with and without the three, in turns and in one run; what
counts is how long a delivery takes from the call of the API to the receiver's request.
"""

import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backlog import put_off
from benchmarks.feeding import Fed, batches, feed
from benchmarks.figures import Comparison, percentile
from benchmarks.scenery import Product, product, receiving
from tests.support.postgres import PostgresServer, fresh_database_sync

HEALTHY = 200
BACKLOG = 200_000
EVENTS_A_SECOND = 200
SECONDS = 10
ROUNDS = 3
HELD_UP = 50
LATE = "/slow/late"
BAD = ("/hang", "/drip", LATE)


@dataclass(frozen=True, slots=True)
class Scale:
    healthy: int = HEALTHY
    backlog: int = BACKLOG
    rate: int = EVENTS_A_SECOND
    seconds: int = SECONDS
    rounds: int = ROUNDS


def compare(scale: Scale) -> Iterator[Comparison]:
    yield _compared("start latency, p99, SQLite", scale, None)
    with PostgresServer(durable=True) as server:
        yield _compared("start latency, p99, PostgreSQL", scale, server.url)


def _compared(name: str, scale: Scale, server: str | None) -> Comparison:
    alone, beside = [], []
    for _ in range(scale.rounds):
        alone.append(_p99(scale, server, bad=False))
        beside.append(_p99(scale, server, bad=True))
    return Comparison(
        name,
        "ms",
        1_000 * statistics.median(beside),
        "without them",
        1_000 * statistics.median(alone),
    )


def _p99(scale: Scale, server: str | None, *, bad: bool) -> float:
    healthy = [f"/ok/{number}" for number in range(scale.healthy)]
    each = -(-scale.rate * scale.seconds // scale.healthy)
    with (
        tempfile.TemporaryDirectory() as folder,
        receiving(Path(folder)) as receiver,
        _database(server) as url,
        product(
            Path(folder),
            receiver,
            database_url=url,
            paths=[*healthy, *BAD],
            projects=each,
            halves=(),
        ) as it,
    ):
        if bad:
            asyncio.run(put_off(it.settings, it.furnished, {LATE: scale.backlog}))
            asyncio.run(
                put_off(it.settings, it.furnished, dict.fromkeys(("/hang", "/drip"), HELD_UP))
            )
        it.start(("serve",) if url is None else ("api", "worker"))
        fed = asyncio.run(_feed_healthy(it, healthy, scale))
        it.wait_for_events(fed.acknowledged)
        latencies = it.latencies(fed)
        it.kill()
    return percentile(latencies, 99)


async def _feed_healthy(it: Product, paths: Sequence[str], scale: Scale) -> Fed:
    """One event in a request, every endpoint in its turn."""
    of_path = it.furnished.projects
    in_turn = [
        each for some in zip(*(of_path[path] for path in paths), strict=True) for each in some
    ]
    bodies = batches(in_turn[: scale.rate * scale.seconds], 1)
    return await feed(it.api, it.furnished.service_key, bodies, rate=scale.rate)


@contextmanager
def _database(server: str | None) -> Iterator[str | None]:
    if server is None:
        yield None
    else:
        with fresh_database_sync(server) as url:
            yield url
