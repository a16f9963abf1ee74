"""Whether healthy endpoints notice bad neighbours: one hangs, one drips, one has a long backlog.

The same load goes to the healthy ones with and without the three, in turns and in one run; what
counts is how long a delivery takes from the call of the API to the receiver's request. Each round
is compared with itself, because a machine may be quick now and slow some minutes later.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.backlog import put_off
from benchmarks.figures import Comparison, Figure, NotRun, percentile
from benchmarks.scenery import Product, product
from benchmarks.sizes import Fairness, Sizes
from benchmarks.stores import StoreChoice, on_each_store

HELD_UP = 50
LATE = "/slow/late"
BAD = ("/hang", "/drip", LATE)
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Arrivals:
    key: str
    name: str
    by_chance: bool


# Calls of many users come by chance, and now and then together. At even distances they never meet:
# then there is no other reason to wait than the neighbours.
ARRIVALS = (
    Arrivals("by_chance", "calls by chance", by_chance=True),
    Arrivals("even", "calls at even distances", by_chance=False),
)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("fairness", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    scale = sizes.fairness
    rounds = [
        (_p99s(scale, store, bad=False), _p99s(scale, store, bad=True)) for _ in range(scale.rounds)
    ]
    for how in ARRIVALS:
        name = f"latency beside bad neighbours on {store.name}, {how.name}, p99"
        good, bad = middle_round([(good[how.key], bad[how.key]) for good, bad in rounds])
        found = Comparison(name, "ms", bad, "without them", good)
        yield Figure.of(f"fairness.{store.key}.{how.key}", found)


def middle_round(rounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The one whose ratio is the median of all; of an even number, the larger of two."""
    return sorted(rounds, key=lambda each: each[1] / each[0])[len(rounds) // 2]


def _p99s(scale: Fairness, store: StoreChoice, *, bad: bool) -> dict[str, float]:
    """By the way in which calls come, from one service."""
    healthy = [f"/ok/{number}" for number in range(scale.healthy)]
    count = scale.rate * scale.seconds
    calls = scale.healthy + count * len(ARRIVALS)
    with product(
        store, paths=[*healthy, *BAD], projects=-(-calls // scale.healthy), halves=()
    ) as it:
        if bad:
            counts = {LATE: scale.backlog, "/hang": HELD_UP, "/drip": HELD_UP}
            asyncio.run(put_off(it.settings, it.furnished, counts))
        store.settle(it.settings)
        it.start()
        # One to each first: how long a service takes until it is warm is another question.
        first, *parts = _parts(it.furnished.in_turn(healthy), scale.healthy, count)
        it.feed(first, connections=CONNECTIONS)
        found = {
            how.key: _p99(it, projects, scale.rate, how)
            for how, projects in zip(ARRIVALS, parts, strict=True)
        }
        it.proved()
    return found


def _parts(projects: Sequence[str], first: int, count: int) -> Iterator[Sequence[str]]:
    yield projects[:first]
    for number, _ in enumerate(ARRIVALS):
        begin = first + number * count
        yield projects[begin : begin + count]


def _p99(it: Product, projects: Sequence[str], rate: int, how: Arrivals) -> float:
    fed = it.feed(projects, rate=rate, by_chance=how.by_chance, connections=CONNECTIONS)
    arrived = it.wait_for_events(fed.acknowledged)
    found = [1_000 * (arrived[event] - began) for event, began in fed.began_at.items()]
    return percentile(found, 99)
