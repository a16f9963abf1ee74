"""Compares this checkout with another one: both services run at once and get load in turn.

Other work of the machine affects both, so the ratios are meaningful even where the figures are not.
The first round of each warms it up and does not count. A ratio compares two consecutive rounds; the
median of the ratios counts.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from statistics import median

from benchmarks import ingest
from benchmarks.checkout import OURS, Checkout
from benchmarks.delivery import Case, cases, fed_case, populated
from benchmarks.environment import Product
from benchmarks.figures import Figure, NotRun, attempted
from benchmarks.population import pieces
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, stores

Round = tuple[Mapping[str, float], Mapping[str, float]]
# The aims use these cases; `--case` selects others.
COMPARED = ("plain.keep-alive", "single")


@dataclass(frozen=True, slots=True)
class Scenario:
    """`halves` are the processes that run under load; by default all."""

    name: str
    cases: Callable[[Sizes], Iterator[Case]]
    feed: Callable[[Product, Sequence[str], Case], Mapping[str, float]]
    halves: tuple[str, ...] | None = None

    def __call__(self, sizes: Sizes, other: Checkout) -> Iterator[Figure | NotRun]:
        for store in stores(sizes):
            for case in self.cases(sizes):
                key = f"against.{other.name}.{self.name}.{store.key}.{case.key}"
                what = f"{self.name} on {store.name}, {case.fed}, CPU beside {other.name}"
                rounds = self._in_turns(store, case, other, sizes.rounds)
                yield from attempted(key, what, _figure(key, what, rounds))

    def _in_turns(
        self, store: StoreChoice, case: Case, other: Checkout, rounds: int
    ) -> Iterator[Round]:
        """The figures of the other checkout, and those of this one right before or after."""
        with ExitStack() as stack:
            both = [
                stack.enter_context(
                    populated(store, case, rounds + 1, checkout=checkout, halves=self.halves)
                )
                for checkout in (other, OURS)
            ]
            parts = [_parts(it, rounds + 1) for it in both]
            for number in range(rounds + 1):
                found: dict[int, Mapping[str, float]] = {}
                # The order alternates, so that it favours neither.
                for side in (0, 1) if number % 2 else (1, 0):
                    found[side] = self.feed(both[side], parts[side][number], case)
                if number:
                    yield found[0], found[1]
            for it in both:
                if self.halves is not None:
                    it.stop()
                    it.start()
                    it.receiver.wait_for(len(it.acknowledged))
                it.proved()


def _deliveries(sizes: Sizes) -> Iterator[Case]:
    wanted = sizes.cases or COMPARED
    return (each for each in cases(sizes) if each.key in wanted)


def _parts(it: Product, rounds: int) -> list[Sequence[str]]:
    projects = it.populated.in_turn()
    return list(pieces(projects, len(projects) // rounds))


def _figure(key: str, what: str, rounds: Iterator[Round]) -> Iterator[Figure]:
    found = list(rounds)
    raw = compared(found)
    yield Figure(key, what, "×", raw["CPU ratio"], raw)


def compared(rounds: Sequence[Round]) -> dict[str, float]:
    """Medians of the figures, and the range of the ratios."""
    cpu = [_cpu(ours) / _cpu(theirs) for theirs, ours in rounds]
    rate = [ours["rate"] / theirs["rate"] for theirs, ours in rounds]
    return {
        "CPU ratio": median(cpu),
        "CPU ratio, least": min(cpu),
        "CPU ratio, most": max(cpu),
        "rate ratio": median(rate),
        "rate ratio, least": min(rate),
        "rate ratio, most": max(rate),
        "CPU s per 1,000": median(_cpu(ours) for _, ours in rounds),
        "CPU s per 1,000, before": median(_cpu(theirs) for theirs, _ in rounds),
        "rate": median(ours["rate"] for _, ours in rounds),
        "rate, before": median(theirs["rate"] for theirs, _ in rounds),
        "rounds": len(rounds),
    }


def _cpu(fed: Mapping[str, float]) -> float:
    """The CPU of the service and of the store."""
    return fed["app CPU s per 1,000"] + fed["store CPU s per 1,000"]


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("delivery", _deliveries, fed_case),
        Scenario("ingest", ingest.cases, ingest.taken, ("api",)),
    )
}
