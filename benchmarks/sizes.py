"""The size of each scenario: in the full run, and in a quick run that only checks that it works."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Fairness:
    """`rate` is one that both stores can sustain on two cores: otherwise the time in a queue of
    callers would be measured."""

    healthy: int = 200
    backlog: int = 200_000
    rate: int = 60
    seconds: int = 20
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class Downloads:
    """`rate` is in bytes per second for each: together most of a gigabit line."""

    downloads: int = 200
    rate: int = 512 * 1024
    rounds: int = 5
    calls: int = 150


@dataclass(frozen=True, slots=True)
class Sizes:
    """`rounds` is how often a rate is measured; the median counts, and the range is reported.

    `store` is the key of the only store to measure, `cases` limits those of `delivery`.
    """

    deliveries: int = 20_000
    singles: int = 10_000
    new_connections: int = 5_000
    endpoints: int = 10
    many_endpoints: int = 10_000
    rounds: int = 3
    bare_requests: int = 50_000
    ingested: int = 20_000
    ingested_singly: int = 10_000
    warm_up: int = 1_000
    paced_rate: int = 100
    paced_seconds: int = 20
    history: int = 1_000_000
    pending: int = 200_000
    measured_beside_history: int = 10_000
    few_pending: int = 1_000
    many_pending: int = 1_000_000
    watched_seconds: float = 20.0
    peer_deliveries: int = 5_000
    peer_rounds: int = 3
    page_rows: int = 1_000_000
    overview_rate: int = 200
    overview_seconds: int = 30
    few_accounts: int = 1_000
    many_accounts: int = 100_000
    account_requests: int = 50
    stored: int = 2_000
    store: str | None = None
    cases: tuple[str, ...] = ()
    fairness: Fairness = field(default_factory=Fairness)
    downloads: Downloads = field(default_factory=Downloads)


FULL = Sizes()
SMALL = Sizes(
    deliveries=200,
    singles=100,
    new_connections=100,
    endpoints=3,
    many_endpoints=40,
    rounds=1,
    bare_requests=300,
    ingested=200,
    ingested_singly=100,
    warm_up=100,
    paced_rate=100,
    paced_seconds=1,
    history=300,
    pending=200,
    measured_beside_history=100,
    few_pending=50,
    many_pending=400,
    watched_seconds=1.0,
    peer_deliveries=60,
    peer_rounds=1,
    page_rows=3_000,
    overview_rate=50,
    overview_seconds=2,
    few_accounts=100,
    many_accounts=2_000,
    account_requests=10,
    stored=100,
    fairness=Fairness(healthy=5, backlog=200, rate=50, seconds=1, rounds=1),
    downloads=Downloads(downloads=4, rounds=1, calls=100),
)
