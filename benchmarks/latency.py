"""Latency of an event from the API call to the receiver's request.

Each request has one event, and is sent on schedule whether earlier ones were answered or not: first
at a steady low rate, then as fast as possible to find the full rate, then at half of that.
"""

from collections.abc import Iterator, Sequence

from benchmarks.delivery import SEVERAL_CONNECTIONS, fed_through
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun, percentile
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store

PACED_CONNECTIONS = 32


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("latency", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    steady = sizes.paced_rate * sizes.paced_seconds
    # At half of any realistic rate, the last part ends within this many events.
    at_half = max(steady, sizes.singles)
    parts = (sizes.warm_up, steady, sizes.singles, at_half)
    with product(
        store,
        paths=[f"/ok/{number}" for number in range(sizes.endpoints)],
        projects=-(-sum(parts) // sizes.endpoints),
    ) as it:
        projects = _shared_out(it.populated.in_turn(), parts)
        fed_through(it, projects[0], 1, SEVERAL_CONNECTIONS)
        low = _latencies(it, projects[1], sizes.paced_rate)
        full = fed_through(it, projects[2], 1, SEVERAL_CONNECTIONS)["rate"]
        half = _latencies(it, projects[3], full / 2)
        it.proved()
    for key, name, found in (
        ("low", f"at {sizes.paced_rate}/s", low),
        ("half", "at half of the full rate", half | {"full rate": full}),
    ):
        what = f"latency on {store.name}, {name}, p99"
        yield Figure(f"latency.{store.key}.{key}", what, "ms", found["p99"], found)


def _shared_out(projects: Sequence[str], parts: Sequence[int]) -> list[list[str]]:
    left = iter(projects)
    return [[next(left) for _ in range(part)] for part in parts]


def _latencies(it: Product, projects: Sequence[str], rate: float) -> dict[str, float]:
    before = it.usage()
    fed = it.feed(projects, rate=rate, connections=PACED_CONNECTIONS)
    arrived = it.wait_for_events(fed.acknowledged)
    used = it.usage().since(before)
    found = [1_000 * (arrived[event] - began) for event, began in fed.began_at.items()]
    return {
        "p50": percentile(found, 50),
        "p99": percentile(found, 99),
        "most": max(found),
        "offered/s": rate,
        "app CPU s per 1,000": 1_000 * used.app / len(projects),
    }
