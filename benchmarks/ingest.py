"""How many milestones a second are committed, beside what the bare store takes in the same run.

The bare store writes one row of the size of an event for each milestone, in transactions of the
same size, and nothing else: no move of a project, no delivery, no queue, no index.
"""

import sqlite3
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from time import perf_counter

from benchmarks.figures import Comparison
from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock, SystemIds, system_entropy
from cuepost.application.milestone_book import Milestone
from cuepost.application.service import Ambient, Rules, Service, assemble
from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Caller, Door
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.project import Origin, Project, ProjectKind, ProjectStatus
from cuepost.ports.store import Store, Transaction
from tests.support.postgres import PostgresServer, fresh_database

MILESTONES = 5_000
BATCH = 100
ROUNDS = 3
PIPELINE = Caller(Door.REST, "key:pipeline", None, SERVICE_SCOPES)


async def compare() -> list[Comparison]:
    with tempfile.TemporaryDirectory() as folder:
        bare = statistics.median(bare_sqlite(Path(folder) / f"{n}.db") for n in range(ROUNDS))
        async with embedded(Path(folder) / "cuepost.db") as store:
            sqlite_rate = await median_rate(store)
    async with on_postgres() as store:
        postgres_rate = await median_rate(store)
    return [
        Comparison("milestones, SQLite", "/s", sqlite_rate, "one bare row each", bare),
        Comparison(
            "milestones, PostgreSQL", "/s", postgres_rate, "the same on SQLite", sqlite_rate
        ),
    ]


def bare_sqlite(path: Path) -> float:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE bare (id BLOB PRIMARY KEY, body BLOB) WITHOUT ROWID")
    body, started = b"x" * 300, perf_counter()
    for first in range(0, MILESTONES, BATCH):
        connection.execute("BEGIN IMMEDIATE")
        rows = [(number.to_bytes(16, "big"), body) for number in range(first, first + BATCH)]
        connection.executemany("INSERT INTO bare VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    rate = MILESTONES / (perf_counter() - started)
    connection.close()
    return rate


@asynccontextmanager
async def embedded(path: Path) -> AsyncIterator[Store]:
    store = SqliteStore(path, SystemClock())
    await store.open()
    yield store
    await store.close()


@asynccontextmanager
async def on_postgres() -> AsyncIterator[Store]:
    with PostgresServer(durable=True) as server:
        async with fresh_database(server.url) as url:
            store = PostgresStore(url)
            await store.migrate(SystemClock().now())
            yield store
            await store.close()


async def median_rate(store: Store) -> float:
    ambient = Ambient(
        SystemClock(), SystemIds(), system_entropy, AesGcmBox([bytes(32)], system_entropy)
    )
    rules = Rules("https://cuepost.example.com", EgressPolicy(), timedelta(hours=24))
    service = assemble(store, ambient, rules)
    owner = await account_with_endpoint(service)
    return statistics.median([await rate(service, owner, n) for n in range(ROUNDS)])


async def account_with_endpoint(service: Service) -> Caller:
    operator = Caller(Door.CLI, "operator", None, frozenset())
    account = await service.perform.change(
        lambda transaction: service.access.create_account(transaction, operator, "Bench", True)
    )
    owner = Caller(Door.REST, "key:bench", account.id, ACCOUNT_SCOPES, webhooks_enabled=True)
    await service.perform.change(
        lambda transaction: service.webhooks.create(
            transaction, owner, "https://example.com/hook", ["project.ready"], ""
        )
    )
    return owner


async def rate(service: Service, owner: Caller, number: int) -> float:
    """Of milestones that make an event and a delivery each."""
    projects = await service.perform.change(lambda transaction: made(transaction, service, owner))
    await report(service, projects, ProjectStatus.PROCESSING, f"{number}-processing")
    started = perf_counter()
    await report(service, projects, ProjectStatus.READY, f"{number}-ready")
    return len(projects) / (perf_counter() - started)


async def made(transaction: Transaction, service: Service, owner: Caller) -> list[Project]:
    return [
        await service.projects.create(
            transaction,
            owner,
            name="Trailer",
            kind=ProjectKind.VIDEO,
            origin=Origin.API,
            access_expires_at=None,
        )
        for _ in range(MILESTONES)
    ]


async def report(
    service: Service, projects: Sequence[Project], status: ProjectStatus, label: str
) -> None:
    for first in range(0, len(projects), BATCH):
        await service.milestones.report(
            PIPELINE,
            [
                Milestone(f"{label}-{place}", project.id, status)
                for place, project in enumerate(projects[first : first + BATCH], start=first)
            ],
        )
