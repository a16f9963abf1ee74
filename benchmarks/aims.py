"""The performance aims of this project, each as one ratio with a bound.

All figures come from one run on one machine; an aim whose figures are missing is listed as not
measured. `TODAY` is the commit that some aims compare with, by `--against`.
"""

from collections.abc import Iterator

from benchmarks.delivery import BARE
from benchmarks.judging import Aim, Figures, Measure, constant, cpu, raw, value

TODAY = "56a7e06"
STORES = {"sqlite": "SQLite", "postgres": "PostgreSQL"}
MODES = {"plain.keep-alive": "batches of 100", "single": "one event a request"}
INGESTED = {"batch": "batches of 100", "single": "one a request"}
NO_PYTHON = "peers.bullmq."


def aims() -> list[Aim]:
    return [
        *_of_cpu(),
        *_of_rates(),
        *_of_resources(),
        *_of_latency(),
        *_of_pages(),
        *_of_growth(),
        *_of_fairness(),
        *_of_ingest(),
        *_of_tls(),
        *_of_length(),
    ]


def _of_cpu() -> Iterator[Aim]:
    for mode, bound in (("plain.keep-alive", 7.0), ("single", 16.0)):
        text, run = f"SQLite, {MODES[mode]}, CPU per 1,000 deliveries", f"deliveries.sqlite.{mode}"
        yield Aim(1, text, "s", cpu(run), "the bare client", raw(run, BARE), bound)
    for mode, bound in (("plain.keep-alive", 0.5), ("single", 0.4)):
        text = f"PostgreSQL, {MODES[mode]}, CPU of service and database"
        ratio = value(f"against.{TODAY}.delivery.postgres.{mode}")
        yield Aim(1, text, "×", ratio, f"commit {TODAY}", constant(1), bound)


def _of_rates() -> Iterator[Aim]:
    for key, name in STORES.items():
        for mode, fed in MODES.items():
            ratio = raw(f"against.{TODAY}.delivery.{key}.{mode}", "rate ratio")
            against = f"commit {TODAY}"
            yield Aim(2, f"{name}, {fed}, rate", "×", ratio, against, constant(1), 2.0, True)
        ours = value(f"deliveries.{key}.plain.keep-alive")
        bullmq = value("peers.bullmq.deliveries")
        yield Aim(2, f"{name}, batches of 100, rate", "/s", ours, "BullMQ", bullmq, 1.0, True)
        ours, best = value(f"deliveries.{key}.single"), _most("products.", ".deliveries")
        text = f"{name}, one event a request, rate"
        yield Aim(2, text, "/s", ours, "webhook products that run here", best, 1.0, True)


def _of_resources() -> Iterator[Aim]:
    for key, name in STORES.items():
        run = f"deliveries.{key}.plain.keep-alive"
        text = f"{name}, batches of 100, CPU per 1,000 deliveries"
        yield Aim(3, text, "s", cpu(run), "the least Python peer", _least_python_peer, 0.2)
        for what, measured, most in (
            ("at rest", value(f"memory.{key}.rest"), 55),
            ("under load", value(f"memory.{key}.load"), 100),
            ("added by a very long queue", raw(f"memory.{key}.pending", "more"), 50),
        ):
            text = f"{name}, memory {what}"
            yield Aim(3, text, "MB", measured, f"{most} MB", constant(most), 1.0)


def _of_latency() -> Iterator[Aim]:
    for key, which, bound in (
        ("sqlite", "p50", 1.0),
        ("sqlite", "p99", 1.0),
        ("postgres", "p50", 1.5),
    ):
        text = f"{STORES[key]}, latency {which} at 100/s"
        ours, least = raw(f"latency.{key}.low", which), _least("peers.", ".latency", which)
        yield Aim(4, text, "ms", ours, "the least of all peers", least, bound)
    for key, name in STORES.items():
        low, half = raw(f"latency.{key}.low", "p99"), raw(f"latency.{key}.half", "p99")
        yield Aim(4, f"{name}, latency p99 at half of the full rate", "ms", half, "100/s", low, 5.0)


def _of_pages() -> Iterator[Aim]:
    for key, name in STORES.items():
        text = f"{name}, overview with a million deliveries beside 200/s, p95"
        yield Aim(4, text, "ms", value(f"overview.{key}"), "100 ms", constant(100), 1.0)


def _of_growth() -> Iterator[Aim]:
    for key, name in STORES.items():
        grown = f"growth.{key}"
        for what, ours, beside in (
            ("CPU", value(grown), raw(grown, "CPU s per 1,000, empty store")),
            ("time", raw(grown, "s per 1,000"), raw(grown, "s per 1,000, empty store")),
        ):
            text = f"{name}, {what} per 1,000 deliveries beside history and backlog"
            yield Aim(5, text, "s", ours, "an empty store", beside, 1.1)
        ours = raw(f"accounts.{key}.deliveries", "CPU ratio")
        text = f"{name}, CPU per 1,000 deliveries beside 100,000 accounts"
        yield Aim(5, text, "×", ours, "1,000 accounts", constant(1), 1.1)
        for many, few in (
            ("many-endpoints", "plain.keep-alive"),
            ("many-endpoints.single", "single"),
        ):
            text = f"{name}, {MODES[few]}, CPU per 1,000 deliveries to very many endpoints"
            ours, beside = cpu(f"deliveries.{key}.{many}"), cpu(f"deliveries.{key}.{few}")
            yield Aim(5, text, "s", ours, "few endpoints", beside, 1.2)
    two, one = value("workers.waiting"), raw("workers.waiting", "one worker/s")
    text = "two workers on PostgreSQL, receivers that take 50 ms"
    yield Aim(5, text, "/s", two, "one worker", one, 1.8, True)


def _of_fairness() -> Iterator[Aim]:
    for key, name in STORES.items():
        for how, calls in (("by_chance", "calls by chance"), ("even", "calls at even distances")):
            ratio = raw(f"fairness.{key}.{how}", "ratio")
            text = f"{name}, latency p99 beside bad neighbours, {calls}"
            yield Aim(5, text, "×", ratio, "without them", constant(1), 1.2)


def _of_ingest() -> Iterator[Aim]:
    for key, name in STORES.items():
        for mode, fed in INGESTED.items():
            ratio = raw(f"against.{TODAY}.ingest.{key}.{mode}", "rate ratio")
            text = f"{name}, milestones taken, {fed}"
            yield Aim(6, text, "×", ratio, f"commit {TODAY}", constant(1), 2.2, True)


def _of_tls() -> Iterator[Aim]:
    for key, name in STORES.items():
        for kind, what, bound in (
            ("tls.keep-alive", "TLS keep-alive", 0.3),
            ("tls.new", "a new TLS connection each", 0.8),
        ):
            ours, bare = value(f"deliveries.{key}.{kind}"), value(f"bare.{kind}")
            yield Aim(6, f"{name}, {what}", "/s", ours, "the bare client", bare, bound, True)


def _of_length() -> Iterator[Aim]:
    for key, name in STORES.items():
        for what, most in (("files", 35), ("functions", 150)):
            text = f"{name}, {what} of ours that one delivery passes"
            yield Aim(7, text, what, raw(f"trace.{key}", what), str(most), constant(most), 1.0)


def _least(begin: str, end: str, name: str) -> Measure:
    return lambda figures: min(figures.raw(key, name) for key in figures.keys(begin, end))


def _most(begin: str, end: str) -> Measure:
    return lambda figures: max(figures[key] for key in figures.keys(begin, end))


def _least_python_peer(figures: Figures) -> float:
    found = figures.keys("peers.", ".deliveries")
    return min(figures.cpu(key) for key in found if not key.startswith(NO_PYTHON))
