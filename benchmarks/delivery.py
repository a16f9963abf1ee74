"""How many deliveries a second go all the way: reported, committed, signed, sent, recorded.

Each is held against what the same client sends with no product around it, in the same run.
"""

import asyncio
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import bare_client
from benchmarks.feeding import batches, feed
from benchmarks.figures import Comparison
from benchmarks.scenery import product, receiving
from tests.support.postgres import PostgresServer, fresh_database_sync


@dataclass(frozen=True, slots=True)
class Delivered:
    rate: float
    cpu_per_thousand: float
    memory: float
    accepted_rate: float


def compare(count: int) -> Iterator[Comparison]:
    limit = bare_client.rate(count)

    def beside_the_client(name: str, found: Delivered) -> Comparison:
        notes = f"{found.cpu_per_thousand:.2f} CPU s per 1,000, {found.memory:.0f} MB"
        return Comparison(name, "/s", found.rate, "the bare client", limit, notes)

    yield beside_the_client("deliveries, SQLite, batches of 100", delivered(count, batch=100))
    single = delivered(count // 4, batch=1, connections=16)
    yield beside_the_client("deliveries, SQLite, one a request", single)
    with PostgresServer(durable=True) as server:
        with fresh_database_sync(server.url) as url:
            found = delivered(count, batch=100, database_url=url, halves=("serve",))
            yield beside_the_client("deliveries, PostgreSQL, batches of 100", found)
        with fresh_database_sync(server.url) as url:
            one = delivered(
                count, batch=100, database_url=url, halves=("api", "worker"), endpoints=10
            )
        with fresh_database_sync(server.url) as url:
            two = delivered(
                count, batch=100, database_url=url, halves=("api", "worker", "worker"), endpoints=10
            )
        yield Comparison("two workers, PostgreSQL", "/s", two.rate, "one worker", one.rate)


def delivered(
    count: int,
    *,
    batch: int,
    database_url: str | None = None,
    halves: tuple[str, ...] = ("serve",),
    endpoints: int = 1,
    connections: int = 4,
) -> Delivered:
    with (
        tempfile.TemporaryDirectory() as name,
        receiving(Path(name)) as receiver,
        product(
            Path(name),
            receiver,
            database_url=database_url,
            halves=halves,
            paths=[f"/ok/{number}" for number in range(endpoints)],
            projects=count // endpoints,
        ) as it,
    ):
        projects = [
            each for some in zip(*it.furnished.projects.values(), strict=True) for each in some
        ]
        before, began = it.usage(), time.monotonic()
        fed = asyncio.run(
            feed(
                it.api, it.furnished.service_key, batches(projects, batch), connections=connections
            )
        )
        it.wait_for(len(projects))
        seconds, after = time.monotonic() - began, it.usage()
        it.proved(fed.acknowledged)
    return Delivered(
        len(projects) / seconds,
        1_000 * (after.cpu - before.cpu) / len(projects),
        after.memory,
        len(projects) / fed.seconds,
    )
