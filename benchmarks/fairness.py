"""Whether healthy endpoints notice bad neighbours: one hangs, one drips, one has a long backlog.

The same load goes to the healthy ones with and without the three, in turns and in one run; what
counts is how long a delivery takes from the call of the API to the receiver's request. Each round
is compared with itself, because a machine may be quick now and slow some minutes later. Calls
during which others on the host took a core away are left out, with the neighbours and without.
"""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from benchmarks.backlog import put_off
from benchmarks.figures import Comparison, Figure, NotRun, percentile
from benchmarks.scenery import Product, product
from benchmarks.sizes import Fairness, Sizes
from benchmarks.stolen_time import StolenTime, stolen_time
from benchmarks.stores import StoreChoice, on_each_store

HELD_UP = 50
LATE = "/slow/late"
BAD = ("/hang", "/drip", LATE)
CONNECTIONS = 16
# Of all calls of a round, or it tells nothing.
FEWEST_UNDISTURBED = 0.25


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


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure | NotRun]:
    scale = sizes.fairness
    rounds = [
        (_heard(scale, store, bad=False), _heard(scale, store, bad=True))
        for _ in range(scale.rounds)
    ]
    for how in ARRIVALS:
        key = f"fairness.{store.key}.{how.key}"
        name = f"latency beside bad neighbours on {store.name}, {how.name}, p99"
        pairs = [(good[how.key], bad[how.key]) for good, bad in rounds]
        telling = [(good.p99, bad.p99) for good, bad in pairs if good.tells and bad.tells]
        if not telling:
            yield NotRun(key, name, "others on this host took the cores away all the time")
            continue
        good, bad = middle_round(telling)
        figure = Figure.of(key, Comparison(name, "ms", bad, "without them", good))
        calls = [calls for pair in pairs for calls in pair]
        left_out = 1 - sum(each.share for each in calls) / len(calls)
        yield replace(
            figure,
            raw={**figure.raw, "rounds": len(telling), "calls left out, %": 100 * left_out},
        )


@dataclass(frozen=True, slots=True)
class Calls:
    """`undisturbed` are the times of those, in milliseconds; `count` is of all."""

    undisturbed: Sequence[float]
    count: int

    @property
    def share(self) -> float:
        return len(self.undisturbed) / self.count

    @property
    def tells(self) -> bool:
        return self.share >= FEWEST_UNDISTURBED

    @property
    def p99(self) -> float:
        return percentile(self.undisturbed, 99)


def middle_round(rounds: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The one whose ratio is the median of all; of an even number, the larger of two."""
    return sorted(rounds, key=lambda each: each[1] / each[0])[len(rounds) // 2]


def _heard(scale: Fairness, store: StoreChoice, *, bad: bool) -> dict[str, Calls]:
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
            how.key: _fed(it, projects, scale.rate, how)
            for how, projects in zip(ARRIVALS, parts, strict=True)
        }
        it.proved()
    return found


def _parts(projects: Sequence[str], first: int, count: int) -> Iterator[Sequence[str]]:
    yield projects[:first]
    for number, _ in enumerate(ARRIVALS):
        begin = first + number * count
        yield projects[begin : begin + count]


def _fed(it: Product, projects: Sequence[str], rate: int, how: Arrivals) -> Calls:
    with stolen_time() as stolen:
        fed = it.feed(projects, rate=rate, by_chance=how.by_chance, connections=CONNECTIONS)
        arrived = it.wait_for_events(fed.acknowledged)
    times = {event: (began, arrived[event]) for event, began in fed.began_at.items()}
    return undisturbed(times.values(), stolen)


def undisturbed(times: Collection[tuple[float, float]], stolen: StolenTime) -> Calls:
    """Of calls with their begin and end."""
    found = [1_000 * (end - begin) for begin, end in times if not stolen.was_between(begin, end)]
    return Calls(found, len(times))
