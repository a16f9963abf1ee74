"""Milestones per second that the API accepts, each with its own event and delivery.

Only the API process runs, so that nothing is sent during the measurement; afterwards everything is
sent and verified. The baseline for SQLite is the bare store: one row of the size of an event for
each milestone, in transactions of the same size.
"""

import sqlite3
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from time import perf_counter

from benchmarks.delivery import BATCH, Case, populated
from benchmarks.environment import Product
from benchmarks.figures import Figure, NotRun, middle
from benchmarks.population import pieces
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store

ROW = b"x" * 300


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    bare = statistics.median(_bare_sqlite(sizes.ingested) for _ in range(sizes.rounds))
    yield Figure("ingest.bare", "bare SQLite, one row each, 100 a commit", "/s", bare)
    yield from on_each_store("ingest", _measured_on, sizes)


def cases(sizes: Sizes) -> Iterator[Case]:
    yield Case("batch", f"in batches of {BATCH}", sizes.ingested, sizes.endpoints)
    yield Case("single", "one a request", sizes.ingested_singly, sizes.endpoints, batch=1)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    for case in cases(sizes):
        raw = middle(_ingested(store, case, sizes.rounds), "rate")
        what = f"milestones taken on {store.name}, {case.name}"
        yield Figure(f"ingest.{store.key}.{case.key}", what, "/s", raw["rate"], raw)


def _ingested(store: StoreChoice, case: Case, rounds: int) -> Sequence[Mapping[str, float]]:
    """Uses one service for all rounds; then sends everything and verifies it."""
    with populated(store, case, rounds, halves=("api",)) as it:
        projects = it.populated.in_turn()
        parts = pieces(projects, len(projects) // rounds)
        found = [taken(it, part, case) for part in parts]
        it.stop()
        it.start()
        it.receiver.wait_for(len(projects))
        it.proved()
    return found


def taken(it: Product, projects: Sequence[str], case: Case) -> Mapping[str, float]:
    before = it.usage()
    fed = it.feed(projects, case.batch, connections=case.connections)
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
