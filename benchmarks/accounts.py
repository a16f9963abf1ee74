"""What many accounts cost: lists, searches, provisioning, the operator's pages, and deliveries.

Two services run on stores of their own, one with few accounts and one with many. Each is asked in
turns, so that other work of the machine affects both. Every account has an endpoint with
deliveries in the current hour, which is what the operator's pages add up. Ratios count: absolute
times are those of this machine.
"""

import asyncio
import re
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from uuid import UUID

import httpx2

from benchmarks.delivery import BATCH, FEW_CONNECTIONS, fed_through
from benchmarks.environment import Product, product
from benchmarks.figures import Figure, NotRun, percentile
from benchmarks.population import OPERATOR, pieces, settings_of
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store
from cuepost.adapters.storage.records.counts import COUNTED
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.bootstrap.container import Container, running
from cuepost.domain.access import OPERATOR_SCOPES
from cuepost.domain.account_reference import search_key
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES, interval_of
from cuepost.domain.instants import from_millis, to_millis
from cuepost.interfaces.wire_models.paging import cursor_of

AT_ONCE = 2_000
TOKEN = re.compile(r'name="_token" value="([^"]+)"')
NUMBERS = Sql(
    """
    SELECT accounts.number AS account, endpoints.number FROM endpoints
    JOIN accounts ON accounts.id = endpoints.account_id
    WHERE endpoints.account_id IN :account_ids
    """
)
Round = Mapping[str, float]


@dataclass(slots=True)
class Side:
    """A service with its accounts, and a client with an operator key and session."""

    it: Product
    client: httpx2.Client
    accounts: Sequence[UUID]
    wall: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, float] = field(default_factory=dict)
    fed: list[Round] = field(default_factory=list)
    new: Iterator[int] = field(default_factory=count)

    def requests(self) -> Mapping[str, Callable[[], httpx2.Response]]:
        get, middle = self.client.get, self.accounts[len(self.accounts) // 2]
        page = {"limit": 50}
        return {
            "list, first page": lambda: get("/v1/accounts", params=page),
            "list, deep page": lambda: get(
                "/v1/accounts", params=page | {"cursor": cursor_of(middle)}
            ),
            "search by name": lambda: get("/v1/accounts", params=page | {"namePrefix": "Studio 5"}),
            "search by external id": lambda: get(
                "/v1/accounts", params=page | {"externalIdPrefix": "cust_5"}
            ),
            "provisioning": lambda: self.client.post("/v1/accounts", json={"name": "New"}),
            "operator's overview, an hour": lambda: get("/operator"),
            "operator's overview, a day": lambda: get("/operator?range=24h"),
            "operator's list of accounts": lambda: get("/operator/accounts"),
            "operator's page of an account": lambda: get(f"/operator/accounts/{middle}"),
        }

    def ask(self, name: str, rounds: int) -> None:
        request, before = self.requests()[name], self.it.usage()
        for _ in range(rounds):
            began = time.perf_counter()
            answer = request()
            self.wall.setdefault(name, []).append(1_000 * (time.perf_counter() - began))
            assert answer.status_code in (200, 201), (name, answer.status_code)
        used = self.it.usage().since(before)
        self.cpu[name] = self.cpu.get(name, 0.0) + used.app + used.store

    def cpu_of(self, name: str) -> float:
        """Milliseconds per request."""
        return 1_000 * self.cpu[name] / len(self.wall[name])

    @property
    def cpu_per_thousand(self) -> float:
        return statistics.median(
            each["app CPU s per 1,000"] + each["store CPU s per 1,000"] for each in self.fed
        )


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("accounts", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    with (
        _side(store, sizes.few_accounts, sizes) as few,
        _side(store, sizes.many_accounts, sizes) as many,
    ):
        sides = (few, many)
        _ask_in_turns(sides, sizes)
        _deliver_in_turns(sides, sizes)
        for each in sides:
            each.it.proved()
    for name in few.wall:
        yield _figure(store, name, few, many)
    raw = {
        "accounts": len(many.accounts),
        f"CPU s per 1,000, {len(few.accounts):,} accounts": few.cpu_per_thousand,
        "CPU ratio": many.cpu_per_thousand / few.cpu_per_thousand,
    }
    what = f"CPU per 1,000 deliveries beside {len(many.accounts):,} accounts on {store.name}"
    yield Figure(f"accounts.{store.key}.deliveries", what, "s", many.cpu_per_thousand, raw)


def _figure(store: StoreChoice, name: str, few: Side, many: Side) -> Figure:
    p50, p95 = (percentile(many.wall[name], percent) for percent in (50, 95))
    p50_few, p95_few = (percentile(few.wall[name], percent) for percent in (50, 95))
    raw = {
        "p50": p50,
        "CPU ms": many.cpu_of(name),
        "p50 ratio": p50 / p50_few,
        "p95 ratio": p95 / p95_few,
        "CPU ratio": many.cpu_of(name) / max(few.cpu_of(name), 0.01),
    }
    what = f"{name}, {len(many.accounts):,} accounts on {store.name}, p95"
    return Figure(f"accounts.{store.key}.{name}", what, "ms", p95, raw)


def _ask_in_turns(sides: Sequence[Side], sizes: Sizes) -> None:
    for name in sides[0].requests():
        for side in sides:
            side.requests()[name]()
        for _ in range(sizes.rounds):
            for side in sides:
                side.ask(name, sizes.account_requests)


def _deliver_in_turns(sides: Sequence[Side], sizes: Sizes) -> None:
    """The first round only warms the services up."""
    size = sizes.measured_beside_history
    for number in range(sizes.rounds + 1):
        for side in sides:
            part = side.it.populated.in_turn()[number * size : (number + 1) * size]
            raw = fed_through(side.it, part, BATCH, FEW_CONNECTIONS)
            if number:
                side.fed.append(raw)


@contextmanager
def _side(store: StoreChoice, accounts: int, sizes: Sizes) -> Iterator[Side]:
    paths = [f"/ok/{number}" for number in range(sizes.endpoints)]
    projects = -(-sizes.measured_beside_history * (sizes.rounds + 1) // sizes.endpoints)
    with product(store, paths=paths, projects=projects, halves=()) as it:
        key, ids = asyncio.run(_filled(it.settings, accounts))
        store.settle(it.settings)
        it.start()
        base_url = f"http://127.0.0.1:{it.settings['PORT']}"
        headers = {"authorization": f"Bearer {key}"}
        with httpx2.Client(
            base_url=base_url, headers=headers, trust_env=False, timeout=60
        ) as client:
            token = TOKEN.findall(client.get("/operator/sign-in").text)[0]
            form = {"_token": token, "key": key}
            client.post("/operator/sign-in", data=form, headers={"origin": base_url})
            yield Side(it, client, ids)


async def _filled(settings: Mapping[str, str], accounts: int) -> tuple[str, list[UUID]]:
    async with running(settings_of(settings)) as container:
        access = container.service.access
        made = await container.service.perform.change(
            lambda transaction: access.create_key(
                transaction, OPERATOR, None, name="bench", scopes=OPERATOR_SCOPES
            )
        )
        ids: list[UUID] = []
        for some in pieces(range(accounts), AT_ONCE):
            async with container.store.transaction() as transaction:
                assert isinstance(transaction, RecordsTransaction)
                ids += await _add_accounts(transaction, container, some)
    return made.token, ids


async def _add_accounts(
    transaction: RecordsTransaction, container: Container, numbers: Sequence[int]
) -> list[UUID]:
    now, make = container.system.clock.now(), container.system.ids
    # Rows of two tables that no use case adds alone.
    session = transaction.session
    named = {make(now): number for number in numbers}
    await session.insert(
        "accounts",
        [
            {
                "id": each,
                "name": f"Studio {number}",
                "webhooks_enabled": True,
                "created_at": now,
                "external_id": f"cust_{number}",
                "search_name": search_key(f"Studio {number}"),
            }
            for each, number in named.items()
        ],
    )
    common = {"events": "project.completed", "description": "", "enabled": True}
    times = {"created_at": now, "updated_at": now, "last_delivered_at": now}
    url = "https://hooks.example.com/"
    await session.insert(
        "endpoints",
        [{"account_id": each, "id": make(now), "url": url} | common | times for each in named],
    )
    await _add_counts(session, list(named), now)
    return list(named)


async def _add_counts(session: StoreSession, account_ids: Sequence[UUID], now: datetime) -> None:
    pairs = await session.fetch(NUMBERS, account_ids=account_ids)
    nothing = dict.fromkeys(COUNTED, 0)
    await session.insert(
        "delivery_counts",
        [
            {"account": account, "endpoint": endpoint, "minutes": minutes}
            | {"since": from_millis(interval_of(to_millis(now - ago), minutes))}
            | nothing
            | {"delivered": 3, "failed": 1}
            for account, endpoint in pairs
            for minutes, ago in (
                (FINE_MINUTES, timedelta(minutes=FINE_MINUTES)),
                (HOUR_MINUTES, timedelta(0)),
            )
        ],
    )
