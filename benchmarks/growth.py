"""The cost of a delivery in a store with a long history and queue, and in an empty store.

The full and the empty store are measured in turns, so that other work of the machine affects both.
Waiting deliveries are due, at endpoints that do not answer.
"""

import asyncio
import statistics
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from benchmarks.backlog import add_history, add_pending
from benchmarks.delivery import BATCH, FEW_CONNECTIONS, fed_through
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store

HANGING = tuple(f"/hang/{number}" for number in range(10))
Round = Mapping[str, float]


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("growth", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    with _populated(store, sizes) as empty, _populated(store, sizes) as full:
        _fill(full, sizes)
        store.settle(full.settings)
        bare, filled = _in_turns(empty, full, sizes)
    cpu, cpu_bare = _cpu(filled), _cpu(bare)
    seconds, seconds_bare = _per_thousand(filled), _per_thousand(bare)
    name = f"{sizes.history:,} history rows and {sizes.pending:,} pending on {store.name}"
    raw = {
        "history rows": sizes.history,
        "pending": sizes.pending,
        "CPU s per 1,000, empty store": cpu_bare,
        "CPU ratio": cpu / cpu_bare,
        "s per 1,000": seconds,
        "s per 1,000, empty store": seconds_bare,
        "time ratio": seconds / seconds_bare,
    }
    what = f"CPU per 1,000 deliveries beside {name}"
    yield Figure(f"growth.{store.key}", what, "s", cpu, raw)


@contextmanager
def _populated(store: StoreChoice, sizes: Sizes) -> Iterator[Product]:
    count = sizes.measured_beside_history * (sizes.rounds + 1)
    paths = [f"/ok/{number}" for number in range(sizes.endpoints)]
    projects = -(-count // sizes.endpoints)
    with product(store, paths=[*paths, *HANGING], projects=projects, halves=()) as it:
        yield it


def _fill(it: Product, sizes: Sizes) -> None:
    paths = [path for path in it.populated.webhook_of if path.startswith("/ok")]
    asyncio.run(add_history(it.settings, it.populated, paths, sizes.history))
    each = -(-sizes.pending // len(HANGING))
    asyncio.run(add_pending(it.settings, it.populated, dict.fromkeys(HANGING, each)))


def _in_turns(empty: Product, full: Product, sizes: Sizes) -> tuple[list[Round], list[Round]]:
    """Both services run all the time; the first round of each only warms it up."""
    found: tuple[list[Round], list[Round]] = ([], [])
    for it in (empty, full):
        it.start()
    for number in range(sizes.rounds + 1):
        for it, rounds in zip((empty, full), found, strict=True):
            raw = fed_through(it, _part(it, number, sizes), BATCH, FEW_CONNECTIONS)
            if number:
                rounds.append(raw)
    for it in (empty, full):
        it.proved()
    return found


def _part(it: Product, number: int, sizes: Sizes) -> Sequence[str]:
    ok = [path for path in it.populated.webhook_of if path.startswith("/ok")]
    size = sizes.measured_beside_history
    return it.populated.in_turn(ok)[number * size : (number + 1) * size]


def _cpu(rounds: Sequence[Round]) -> float:
    """The CPU of the service and of the store."""
    return statistics.median(
        each["app CPU s per 1,000"] + each["store CPU s per 1,000"] for each in rounds
    )


def _per_thousand(rounds: Sequence[Round]) -> float:
    return statistics.median(1_000 / each["rate"] for each in rounds)
