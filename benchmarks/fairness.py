"""Whether bad neighbours slow down healthy endpoints: one hangs, one drips, one has a backlog.

The healthy endpoints get the same load with and without the three, in turns and in one run. The
latency from the API call to the receiver's request counts. Calls during which other virtual
machines of the host used a core ("steal") are left out on both sides, and so are rounds with many
such calls: their remaining calls would be slower too, but on one side only.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.backlog import add_pending
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun, middle, percentile
from benchmarks.sizes import Fairness, Sizes
from benchmarks.stolen_time import StolenTime, stolen_time
from benchmarks.stores import StoreChoice, on_each_store

HELD_UP = 50
LATE = "/slow/late"
BAD = ("/hang", "/drip", LATE)
CONNECTIONS = 16
# Smallest share of undisturbed calls in a usable round.
FEWEST_UNDISTURBED = 0.75
# Rounds to try for each usable round that is wanted.
ROUNDS_TRIED = 2
MEASURED = "beside them"


@dataclass(frozen=True, slots=True)
class Arrivals:
    key: str
    name: str
    by_chance: bool


# Calls of many users arrive at random, and sometimes at once. Evenly spaced calls never coincide,
# so the neighbours are the only reason to wait.
ARRIVALS = (
    Arrivals("by_chance", "calls by chance", by_chance=True),
    Arrivals("even", "calls at even distances", by_chance=False),
)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("fairness", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure | NotRun]:
    scale = sizes.fairness
    rounds: dict[str, list[Mapping[str, float]]] = {how.key: [] for how in ARRIVALS}
    tried = 0
    while tried < ROUNDS_TRIED * scale.rounds and _lacks_rounds(rounds, scale):
        tried += 1
        good, bad = _heard(scale, store, bad=False), _heard(scale, store, bad=True)
        for key, found in rounds.items():
            if good[key].tell and bad[key].tell and len(found) < scale.rounds:
                found.append(compared(good[key], bad[key]))
    for how in ARRIVALS:
        key = f"fairness.{store.key}.{how.key}"
        name = f"latency beside bad neighbours on {store.name}, {how.name}, p99"
        if 2 * len(rounds[how.key]) < scale.rounds:
            yield NotRun(key, name, "others on this host took the cores away for most of the time")
            continue
        raw = middle(rounds[how.key], "ratio")
        yield Figure(key, name, "ms", raw.pop(MEASURED), raw | {"rounds tried": tried})


def _lacks_rounds(rounds: Mapping[str, Sequence[object]], scale: Fairness) -> bool:
    return any(len(each) < scale.rounds for each in rounds.values())


def compared(good: "Calls", bad: "Calls") -> Mapping[str, float]:
    return {
        MEASURED: bad.p99,
        "without them": good.p99,
        "ratio": bad.p99 / good.p99,
        "calls left out, %": 100 * (1 - bad.share),
        "calls left out without them, %": 100 * (1 - good.share),
    }


@dataclass(frozen=True, slots=True)
class Calls:
    """`undisturbed` has the latencies in ms without steal; `count` is the number of all calls."""

    undisturbed: Sequence[float]
    count: int

    @property
    def share(self) -> float:
        return len(self.undisturbed) / self.count

    @property
    def tell(self) -> bool:
        return self.share >= FEWEST_UNDISTURBED

    @property
    def p99(self) -> float:
        return percentile(self.undisturbed, 99)


def _heard(scale: Fairness, store: StoreChoice, *, bad: bool) -> dict[str, Calls]:
    """The figures for each arrival pattern, from one service."""
    healthy = [f"/ok/{number}" for number in range(scale.healthy)]
    count = scale.rate * scale.seconds
    calls = scale.healthy + count * len(ARRIVALS)
    with product(
        store, paths=[*healthy, *BAD], projects=-(-calls // scale.healthy), halves=()
    ) as it:
        if bad:
            counts = {LATE: scale.backlog, "/hang": HELD_UP, "/drip": HELD_UP}
            asyncio.run(add_pending(it.settings, it.populated, counts))
        store.settle(it.settings)
        it.start()
        # A first call to each endpoint warms the service up.
        first, *parts = _parts(it.populated.in_turn(healthy), scale.healthy, count)
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
    times = [(began, arrived[event]) for event, began in fed.began_at.items()]
    return undisturbed(times, stolen)


def undisturbed(times: Sequence[tuple[float, float]], stolen: StolenTime) -> Calls:
    """`times` are the begin and the end of each call."""
    found = [1_000 * (end - begin) for begin, end in times if not stolen.was_between(begin, end)]
    return Calls(found, len(times))
