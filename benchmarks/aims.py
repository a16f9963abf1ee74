"""The aims of this project for its own speed, each as one ratio with a bound.

Those about products that are not run here are held against figures that were taken once, on a
machine like the one these aims were made for; `PUBLISHED` has them.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from benchmarks.figures import Figure

APP, STORE = "app CPU s per 1,000", "store CPU s per 1,000"
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
BEST_PRODUCT, BULLMQ = 1_143.0, 3_784.0


@dataclass(frozen=True, slots=True)
class Peer:
    """Deliveries a second, CPU seconds per 1,000 of app and store, memory and latency."""

    rate: float
    cpu: float
    megabytes: float
    p50: float | None = None
    p99: float | None = None


PUBLISHED = {
    "BullMQ": Peer(BULLMQ, 0.46, 198, 2.2, 5.2),
    "Outpost": Peer(BEST_PRODUCT, 1.55, 179, 26, 55),
    "pg-boss": Peer(963, 1.93, 200, 226, 487),
    "WebhookX": Peer(950, 1.89, 147, 2.6, 7.3),
    "Dramatiq": Peer(873, 2.08, 150),
    "graphile-worker": Peer(664, 2.48, 204),
    "arq": Peer(506, 3.64, 106, 13, 24),
    "Huey": Peer(476, 1.95, 107, 4.5, 11),
    "Celery": Peer(333, 4.96, 313, 4.0, 18),
    "Procrastinate": Peer(259, 6.19, 148, 4.7, 12),
    "Convoy": Peer(166, 9.89, 271),
}


class Figures:
    """By their keys; what was not measured raises KeyError."""

    def __init__(self, figures: list[Figure]) -> None:
        self._by_key = {figure.key: figure for figure in figures}

    def __getitem__(self, key: str) -> float:
        return self._by_key[key].value

    def raw(self, key: str, name: str) -> float:
        return self._by_key[key].raw[name]

    def cpu(self, key: str) -> float:
        return self.raw(key, APP) + self.raw(key, STORE)

    def peers(self, kind: str, name: str | None = None) -> list[float]:
        """Of all peers in this run."""
        chosen = [
            each
            for each in self._by_key.values()
            if each.key.startswith("peers.") and each.key.endswith(kind)
        ]
        return [each.raw[name] if name else self.cpu(each.key) for each in chosen]


Measure = Callable[[Figures], float]


@dataclass(frozen=True, slots=True)
class Aim:
    """`at_least`, or else at most, so many times as much as what it is held against."""

    number: int
    text: str
    unit: str
    measured: Measure
    against: str
    beside: Measure
    bound: float
    at_least: bool = True


@dataclass(frozen=True, slots=True)
class Judged:
    number: int
    text: str
    unit: str
    against: str
    bound: str
    measured: float | None = None
    beside: float | None = None
    ratio: float | None = None
    met: bool | None = None

    def kept(self) -> dict[str, Any]:
        return asdict(self)


def judge(figures: list[Figure]) -> list[Judged]:
    """Those not met first, then those that were not measured."""
    found = [_judged(aim, Figures(figures)) for aim in aims()]
    order = {False: 0, None: 1, True: 2}
    return sorted(found, key=lambda judged: (order[judged.met], judged.number))


def _judged(aim: Aim, figures: Figures) -> Judged:
    bound = f"{'≥' if aim.at_least else '≤'} {aim.bound:g} ×"
    known = (aim.number, aim.text, aim.unit, aim.against, bound)
    try:
        measured, beside = aim.measured(figures), aim.beside(figures)
    except KeyError:
        return Judged(*known)
    ratio = measured / beside
    met = ratio >= aim.bound if aim.at_least else ratio <= aim.bound
    return Judged(*known, measured, beside, ratio, met)


def aims() -> Iterator[Aim]:
    yield from _rates()
    for key, name in STORES.items():
        yield from _of_tls(key, name)
        yield from _of_resources(key, name)
        yield from _of_latency(key, name)
        yield from _of_growth(key, name)
    yield from _of_ingest()
    yield from _of_workers()


def _rates() -> Iterator[Aim]:
    product, bullmq = "the best webhook product, as published", "BullMQ, as published"
    for key, text, against, beside, bound in (
        ("sqlite.plain.keep-alive", "SQLite, batches of 100", product, BEST_PRODUCT, 10.0),
        ("sqlite.one-endpoint", "SQLite, one endpoint, batches", product, BEST_PRODUCT, 10.0),
        ("sqlite.plain.keep-alive", "SQLite, batches of 100", bullmq, BULLMQ, 2.5),
        ("sqlite.single", "SQLite, one event a request", product, BEST_PRODUCT, 5.0),
        ("postgres.plain.keep-alive", "PostgreSQL, batches of 100", product, BEST_PRODUCT, 6.0),
        ("postgres.single", "PostgreSQL, one event a request", product, BEST_PRODUCT, 3.5),
    ):
        yield Aim(1, text, "/s", value(f"deliveries.{key}"), against, constant(beside), bound)


def _of_tls(key: str, name: str) -> Iterator[Aim]:
    for kind, what, bound in (
        ("tls.keep-alive", "TLS keep-alive", 0.4),
        ("tls.new", "a new TLS connection each", 0.8),
    ):
        ours, bare = value(f"deliveries.{key}.{kind}"), value(f"bare.{kind}")
        yield Aim(2, f"{name}, {what}", "/s", ours, "the bare client", bare, bound)


def _of_resources(key: str, name: str) -> Iterator[Aim]:
    run = f"deliveries.{key}.plain.keep-alive"
    cpu, memory = f"{name}, CPU per 1,000 deliveries, service and store", f"{name}, memory"
    published, here = "the least of the published peers", "the least of the peers in this run"
    for text, unit, ours, against, beside in (
        (cpu, "s", _cpu(run), published, constant(min(each.cpu for each in PUBLISHED.values()))),
        (cpu, "s", _cpu(run), here, _least(".deliveries")),
        (
            *(memory, "MB", raw(run, "app MB"), published),
            constant(min(each.megabytes for each in PUBLISHED.values())),
        ),
        (memory, "MB", raw(run, "app MB"), here, _least(".deliveries", "app MB")),
    ):
        yield Aim(3, text, unit, ours, against, beside, 1.0, at_least=False)
    more = raw(f"memory.{key}.pending", "more")
    text = f"{name}, memory that a very long queue adds to a short one"
    yield Aim(3, text, "MB", more, "50 MB", constant(50), 1.0, at_least=False)


def _of_latency(key: str, name: str) -> Iterator[Aim]:
    low, half = f"latency.{key}.low", f"latency.{key}.half"
    for which in ("p50", "p99"):
        yield Aim(
            4,
            f"{name}, latency {which} at 100/s",
            "ms",
            raw(low, which),
            "the least of all peers in this run",
            _least(".latency", which),
            1.0,
            at_least=False,
        )
    text = f"{name}, latency p99 at half of the full rate"
    yield Aim(4, text, "ms", raw(half, "p99"), "p99 at 100/s", raw(low, "p99"), 5.0, at_least=False)


def _least(kind: str, name: str | None = None) -> Measure:
    """Of the peers in this run, where there are any."""

    def least(figures: Figures) -> float:
        found = figures.peers(kind, name)
        if not found:
            raise KeyError("no peers in this run")
        return min(found)

    return least


def _of_growth(key: str, name: str) -> Iterator[Aim]:
    grown = f"growth.{key}"
    for what, unit, ours, beside in (
        ("CPU", "s", value(grown), raw(grown, "CPU s per 1,000, empty store")),
        ("time", "s", raw(grown, "s per 1,000"), raw(grown, "s per 1,000, empty store")),
    ):
        text = f"{name}, {what} per 1,000 deliveries beside history and backlog"
        yield Aim(5, text, unit, ours, "an empty store", beside, 1.1, at_least=False)
    for many, few, fed in (
        ("many-endpoints", "plain.keep-alive", "batches of 100"),
        ("many-endpoints.single", "single", "one event a request"),
    ):
        text = f"{name}, CPU per 1,000 deliveries to very many endpoints, {fed}"
        ours, beside = _cpu(f"deliveries.{key}.{many}"), _cpu(f"deliveries.{key}.{few}")
        yield Aim(5, text, "s", ours, "few endpoints", beside, 1.1, at_least=False)


def _of_workers() -> Iterator[Aim]:
    """What was measured, and beside it what only the CPU per delivery would allow."""
    for key, text in (
        ("two", "two workers on PostgreSQL, as measured"),
        ("waiting", "two workers on PostgreSQL, receivers that take 50 ms"),
    ):
        two, one = value(f"workers.{key}"), raw(f"workers.{key}", "one worker/s")
        yield Aim(5, text, "/s", two, "one worker", one, 1.8)
    text = "two workers on PostgreSQL, computed from CPU per delivery, not measured"
    computed = raw("workers.two", "without a lack of cores")
    yield Aim(5, text, "×", computed, "one worker", constant(1), 1.8)


def _of_ingest() -> Iterator[Aim]:
    for key, text, wanted in (
        ("sqlite.batch", "milestones in batches of 100, SQLite", 20_000),
        ("postgres.batch", "milestones in batches of 100, PostgreSQL", 10_000),
        ("sqlite.single", "milestones one a request, SQLite", 3_000),
        ("postgres.single", "milestones one a request, PostgreSQL", 3_000),
    ):
        ours = value(f"ingest.{key}")
        yield Aim(6, text, "/s", ours, f"{wanted:,}/s", constant(wanted), 1.0)


def _cpu(key: str) -> Measure:
    return lambda figures: figures.cpu(key)


def value(key: str) -> Measure:
    return lambda figures: figures[key]


def raw(key: str, name: str) -> Measure:
    return lambda figures: figures.raw(key, name)


def constant(number: float) -> Measure:
    return lambda _: number


def machine_factor(figures: list[Figure]) -> Mapping[str, float]:
    """What each peer does here, for one of what was published of it."""
    known = {name.lower(): peer.rate for name, peer in PUBLISHED.items()}
    found: dict[str, float] = {}
    for figure in figures:
        first, _, rest = figure.key.partition(".")
        name = rest.partition(".")[0]
        if first == "peers" and figure.key.endswith(".deliveries") and name in known:
            found[name] = figure.value / known[name]
    return found
