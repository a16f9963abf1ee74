"""Whether healthy endpoints notice bad neighbours: one hangs, one drips, one has a long backlog.

The same load goes to the healthy ones with and without the three, in turns and in one run; what
counts is how long a delivery takes from the call of the API to the receiver's request.
"""

import asyncio
import statistics
from collections.abc import Iterator

from benchmarks.backlog import put_off
from benchmarks.figures import Comparison, Figure, NotRun, percentile
from benchmarks.scenery import product
from benchmarks.sizes import Fairness, Sizes
from benchmarks.stores import StoreChoice, on_each_store

HELD_UP = 50
LATE = "/slow/late"
BAD = ("/hang", "/drip", LATE)
CONNECTIONS = 16


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("fairness", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    scale = sizes.fairness
    alone, beside = [], []
    for _ in range(scale.rounds):
        alone.append(_p99(scale, store, bad=False))
        beside.append(_p99(scale, store, bad=True))
    name = f"latency beside bad neighbours on {store.name}, p99"
    found = Comparison(
        name, "ms", statistics.median(beside), "without them", statistics.median(alone)
    )
    yield Figure.of(f"fairness.{store.key}", found)


def _p99(scale: Fairness, store: StoreChoice, *, bad: bool) -> float:
    healthy = [f"/ok/{number}" for number in range(scale.healthy)]
    count = scale.rate * scale.seconds
    with product(
        store, paths=[*healthy, *BAD], projects=1 + -(-count // scale.healthy), halves=()
    ) as it:
        if bad:
            counts = {LATE: scale.backlog, "/hang": HELD_UP, "/drip": HELD_UP}
            asyncio.run(put_off(it.settings, it.furnished, counts))
        store.bring_to_disk()
        it.start()
        projects = it.furnished.in_turn(healthy)
        # One to each first: how long a service takes until it is warm is another question.
        it.feed(projects[: scale.healthy], connections=CONNECTIONS)
        projects = projects[scale.healthy : scale.healthy + count]
        fed = it.feed(projects, rate=scale.rate, connections=CONNECTIONS)
        arrived = it.wait_for_events(fed.acknowledged)
        it.proved()
    found = [1_000 * (arrived[event] - began) for event, began in fed.began_at.items()]
    return percentile(found, 99)
