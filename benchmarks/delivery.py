"""Deliveries per second through all steps: reported, committed, signed, sent, recorded.

Time counts from the first API call to the last request at the receiver; CPU is read once everything
is recorded.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass

from benchmarks.bare_client import KINDS, sent
from benchmarks.checkout import OURS, Checkout
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun, attempted, middle
from benchmarks.population import pieces
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, stores

BATCH = 100
FEW_CONNECTIONS, SEVERAL_CONNECTIONS = 4, 16
BARE, BARE_REQUESTS = "bare client CPU s per 1,000", 5_000
BESIDE_BARE = ("plain.keep-alive", "single")


@dataclass(frozen=True, slots=True)
class Case:
    key: str
    name: str
    count: int
    endpoints: int
    batch: int = BATCH
    tls: bool = False
    keep_alive: bool = True

    @property
    def connections(self) -> int:
        """How clients call the API."""
        return SEVERAL_CONNECTIONS if self.batch == 1 else FEW_CONNECTIONS

    @property
    def fed(self) -> str:
        return f"batches of {self.batch}" if self.batch > 1 else "one event a request"


def cases(sizes: Sizes) -> Iterator[Case]:
    few, many, count = sizes.endpoints, sizes.many_endpoints, sizes.deliveries
    for key, (tls, keep_alive, name) in KINDS.items():
        wanted = count if keep_alive else sizes.new_connections
        yield Case(key, f"{name}, {few} endpoints", wanted, few, tls=tls, keep_alive=keep_alive)
    yield Case("one-endpoint", "plain HTTP, keep-alive, one endpoint", count, 1)
    yield Case("many-endpoints", f"plain HTTP, keep-alive, {many:,} endpoints", count, many)
    for key, endpoints in (("single", few), ("many-endpoints.single", many)):
        name = f"plain HTTP, keep-alive, {endpoints:,} endpoints"
        yield Case(key, name, max(sizes.singles, endpoints), endpoints, batch=1)
    yield Case("tls.single", f"TLS, keep-alive, {few} endpoints", sizes.singles, few, 1, tls=True)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    for store in stores(sizes):
        for case in cases(sizes):
            if sizes.cases and case.key not in sizes.cases:
                continue
            what = f"cuepost on {store.name}, {case.name}, {case.fed}"
            figures = _measured(store, case, what, sizes.rounds)
            yield from attempted(f"delivery.{store.key}.{case.key}", what, figures)


def _measured(store: StoreChoice, case: Case, what: str, rounds: int) -> Iterator[Figure]:
    raw = delivered(store, case, rounds)
    yield Figure(f"deliveries.{store.key}.{case.key}", what, "/s", raw["rate"], raw)


def delivered(store: StoreChoice, case: Case, rounds: int) -> Mapping[str, float]:
    """Uses one service for all rounds, and verifies once at the end."""
    with populated(store, case, rounds) as it:
        projects = it.populated.in_turn()
        parts = pieces(projects, len(projects) // rounds)
        found = [fed_case(it, part, case) | _bare(case) for part in parts]
        history = it.proved()
    return {**middle(found, "rate"), "sent twice": history.duplicates()}


def _bare(case: Case) -> dict[str, float]:
    """Alternates between the bare client and the service, where the aims compare them."""
    if case.key not in BESIDE_BARE:
        return {}
    return {BARE: sent(BARE_REQUESTS)["app CPU s per 1,000"]}


def populated(
    store: StoreChoice,
    case: Case,
    rounds: int,
    *,
    checkout: Checkout = OURS,
    halves: Sequence[str] | None = None,
    module: str = "cuepost",
) -> AbstractContextManager[Product]:
    return product(
        store,
        paths=[f"/ok/{number}" for number in range(case.endpoints)],
        projects=rounds * -(-case.count // case.endpoints),
        halves=halves,
        tls=case.tls,
        keep_alive=case.keep_alive,
        checkout=checkout,
        module=module,
    )


def fed_case(it: Product, projects: Sequence[str], case: Case) -> dict[str, float]:
    return fed_through(it, projects, case.batch, case.connections)


def fed_through(
    it: Product, projects: Sequence[str], batch: int, connections: int
) -> dict[str, float]:
    """Does not verify, because the scenario goes on."""
    count, before = len(projects), it.usage()
    fed = it.feed(projects, batch, connections=connections)
    it.receiver.wait_for(len(it.acknowledged))
    it.wait_until_settled()
    recorded, used, memory = time.time(), it.usage().since(before), it.memory
    arrived = it.wait_for_events(fed.acknowledged)
    seconds = max(arrived[event_id] for event_id in fed.acknowledged) - fed.began
    thousands = count / 1_000
    return {
        "rate": count / seconds,
        "accepted/s": count / fed.seconds,
        "app CPU s per 1,000": used.app / thousands,
        "store CPU s per 1,000": used.store / thousands,
        "receiver CPU s per 1,000": used.receiver / thousands,
        "generator CPU s per 1,000": fed.cpu / thousands,
        "app MB": memory,
        "store MB": it.store.memory,
        "receiver's share of a core": used.receiver / seconds,
        "generator's share of a core": fed.cpu / fed.seconds,
        "asked to wait": fed.refused,
        "s until all was seen to be recorded": recorded - fed.began,
    }
