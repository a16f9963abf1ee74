"""How many milestones a second the API takes, each with an event and a delivery of its own.

The API half runs alone, so that nothing is sent meanwhile; when the clock has stopped everything is
sent and checked. Beside SQLite stands what the bare store takes: one row of the size of an event
for each milestone, in transactions of the same size, and nothing else.
"""

import sqlite3
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.delivery import BATCH, FEW_CONNECTIONS, SEVERAL_CONNECTIONS
from benchmarks.figures import Figure, NotRun, middle
from benchmarks.furnishing import pieces
from benchmarks.scenery import Product, product
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store

ROW = b"x" * 300


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    bare = statistics.median(_bare_sqlite(sizes.ingested) for _ in range(sizes.rounds))
    yield Figure("ingest.bare", "bare SQLite, one row each, 100 a commit", "/s", bare)
    yield from on_each_store("ingest", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    for key, name, count, batch in (
        ("batch", f"in batches of {BATCH}", sizes.ingested, BATCH),
        ("single", "one a request", sizes.ingested_singly, 1),
    ):
        raw = middle(_ingested(store, sizes, count, batch), "rate")
        what = f"milestones taken on {store.name}, {name}"
        yield Figure(f"ingest.{store.key}.{key}", what, "/s", raw["rate"], raw)


def _ingested(
    store: StoreChoice, sizes: Sizes, count: int, batch: int
) -> Sequence[Mapping[str, float]]:
    """One service for all rounds; then all is sent, and one proof."""
    endpoints, rounds = sizes.endpoints, sizes.rounds
    with product(
        store,
        paths=[f"/ok/{number}" for number in range(endpoints)],
        projects=rounds * -(-count // endpoints),
        halves=("api",),
    ) as it:
        projects = it.furnished.in_turn()
        parts = pieces(projects, len(projects) // rounds)
        found = [_taken(it, part, batch) for part in parts]
        it.stop()
        it.start()
        it.receiver.wait_for(len(projects))
        it.proved()
    return found


def _taken(it: Product, projects: Sequence[str], batch: int) -> Mapping[str, float]:
    before = it.usage()
    connections = SEVERAL_CONNECTIONS if batch == 1 else FEW_CONNECTIONS
    fed = it.feed(projects, batch, connections=connections)
    used, memory = it.usage().since(before), it.memory
    thousands = len(projects) / 1_000
    return {
        "rate": len(projects) / fed.seconds,
        "app CPU s per 1,000": used.app / thousands,
        "store CPU s per 1,000": used.store / thousands,
        "generator CPU s per 1,000": fed.cpu / thousands,
        "app MB": memory,
        "generator's share of a core": fed.cpu / fed.seconds,
        "asked to wait": fed.refused,
    }


def _bare_sqlite(count: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        connection = sqlite3.connect(Path(folder, "bare.db"), isolation_level=None)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("CREATE TABLE bare (id BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID")
        began = perf_counter()
        for first in range(0, count, BATCH):
            connection.execute("BEGIN IMMEDIATE")
            rows = [(number.to_bytes(16, "big"), ROW) for number in range(first, first + BATCH)]
            connection.executemany("INSERT INTO bare VALUES (?, ?)", rows)
            connection.execute("COMMIT")
        seconds = perf_counter() - began
        connection.close()
    return count / seconds
