"""The cost of the store alone: reporting, claiming and recording without HTTP.

Groups of 100 correspond to full batches, groups of 14 to sixteen callers with single events, and
groups of one to a quiet service. Milestones are reported through the use case of the API. On
SQLite, deliveries are handed over to the worker, as in `serve`; on PostgreSQL, the worker claims
them. `commit` is the CPU after the last statement of a transaction. The minimum of the rounds
counts, because other work can only add to it.
"""

import asyncio
import gc
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar, cast
from uuid import UUID, uuid4

import uvloop

from benchmarks.backlog import attempt_of
from benchmarks.environment import MASTER_KEY
from benchmarks.figures import Figure, NotRun
from benchmarks.population import pieces, populate, settings_of
from benchmarks.sizes import Sizes
from benchmarks.stores import StoreChoice, on_each_store
from cuepost.adapters.storage.outbox import NoHandover
from cuepost.application.milestone_batch import Milestone
from cuepost.application.service import assemble
from cuepost.bootstrap.container import Container, running
from cuepost.bootstrap.server import OBJECTS_BETWEEN_COLLECTIONS
from cuepost.domain.access import SERVICE_SCOPES, Caller, Interface
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.project import ProjectStatus
from cuepost.ports.dispatch import Assignment, Claim, Lane, NextStep, Result
from cuepost.ports.store import Action, Priority, Store, Transaction

T = TypeVar("T")

GROUPS = (100, 14, 1)
ENDPOINTS = 10
PIPELINE = Caller(Interface.REST, "key:bench", None, SERVICE_SCOPES)


def measured(sizes: Sizes) -> Iterator[Figure | NotRun]:
    yield from on_each_store("store", _measured_on, sizes)


def _measured_on(store: StoreChoice, sizes: Sizes) -> Iterator[Figure]:
    for group in GROUPS:
        # A multiple of the number of endpoints; small groups take long.
        count = max(sizes.stored * group // (100 * ENDPOINTS), ENDPOINTS) * ENDPOINTS
        rounds = [_round(store, group, count) for _ in range(sizes.rounds)]
        raw = min(rounds, key=lambda each: sum(each.values()))
        what = f"{store.name}, groups of {group}"
        yield Figure(f"store.{store.key}.{group}", what, "µs", sum(raw.values()), raw)


def _round(store: StoreChoice, group: int, count: int) -> Mapping[str, float]:
    with tempfile.TemporaryDirectory(prefix="cuepost-bench-") as folder, store.fresh() as chosen:
        settings = {
            "DATA_DIR": str(Path(folder, "data")),
            "MASTER_KEY": MASTER_KEY,
            "RECEIVER_NETWORKS": "127.0.0.0/8",
            "RECEIVER_HTTP": "true",
            "RECEIVER_PORTS": "1-65535",
            **chosen,
        }
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(_costs(store, settings, group, count))


async def _costs(
    store: StoreChoice, settings: Mapping[str, str], group: int, count: int
) -> Mapping[str, float]:
    urls = {f"/ok/{each}": f"http://127.0.0.1:1/ok/{each}" for each in range(ENDPOINTS)}
    populated = await populate(settings, urls, 2 * count // ENDPOINTS)
    projects = populated.in_turn()
    async with running(settings_of(settings)) as container:
        bench = Bench(container, claims=store.server is not None)
        await bench.register()
        await bench.deliver(projects[:count], group)
        bench.cpu.clear()
        # As a service does after its start.
        gc.collect()
        gc.freeze()
        gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
        before = store.cpu
        await bench.deliver(projects[count:], group)
        per_delivery = 1_000_000 / len(projects[count:])
        found = {name: used * per_delivery for name, used in bench.cpu.items()}
        return found | ({"database": (store.cpu - before) * per_delivery} if store.pids else {})


class DirectHandover(NoHandover):
    """Hands everything over to one worker: this benchmark."""

    def __init__(self, worker: UUID) -> None:
        self._worker = worker
        self.taken: list[Assignment] = []

    def reserve(self, lane: Lane) -> UUID:
        return self._worker

    def take(self, worker: UUID, assignments: Sequence[Assignment], as_of: object) -> None:
        self.taken += assignments


class Metered:
    """A store; `commit` is the CPU after the end of a transaction's block."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.commit = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, action: Action[T], priority: Priority) -> T:
        ended = 0.0

        async def metered(transaction: Transaction) -> T:
            nonlocal ended
            made = await action(transaction)
            ended = time.process_time()
            return made

        made = await self._store.write(metered, priority)
        self.commit += time.process_time() - ended
        return made


class Bench:
    """`cpu` has the CPU seconds of this process with all threads, by operation."""

    def __init__(self, container: Container, *, claims: bool) -> None:
        self._store = Metered(container.store)
        self._service = assemble(cast("Store", self._store), container.system, container.rules)
        self._clock = container.system.clock
        self._worker = uuid4()
        self._handed_over = DirectHandover(self._worker)
        self._claims = claims
        self.cpu: dict[str, float] = defaultdict(float)
        if not claims:
            container.store.handover = self._handed_over  # type: ignore[attr-defined]  # see SqliteStore

    async def register(self) -> None:
        async with self._store.transaction() as transaction:
            await transaction.queue.register_worker(
                self._worker, self._clock.now() + timedelta(hours=1)
            )

    async def deliver(self, projects: Sequence[str], group: int) -> None:
        for some in pieces(projects, group):
            await self._write(some)
            assignments = await self._assigned(len(some))
            await self._record([_delivered(each, self._clock.now()) for each in assignments])

    async def _write(self, projects: Sequence[str]) -> None:
        milestones = [
            Milestone(f"done-{each}", UUID(each), ProjectStatus.COMPLETED) for each in projects
        ]
        with self._counted("booking"):
            answers = await self._service.milestones.report(PIPELINE, milestones)
        assert all(each.accepted for each in answers)

    async def _assigned(self, count: int) -> Sequence[Assignment]:
        if not self._claims:
            taken, self._handed_over.taken = self._handed_over.taken, []
            return taken
        wanted = Claim(self._worker, count, lambda _: count)
        with self._counted("claiming"):
            claimed = await self._store.write(
                lambda transaction: transaction.queue.claim(wanted, self._clock.now()),
                Priority.BACKGROUND,
            )
        assert len(claimed.assignments) == count
        return claimed.assignments

    async def _record(self, results: Sequence[Result]) -> None:
        with self._counted("recording"):
            late = await self._store.write(
                lambda transaction: transaction.outcomes.record(
                    self._worker, results, self._clock.now()
                ),
                Priority.BACKGROUND,
            )
        assert late == 0

    @contextmanager
    def _counted(self, name: str) -> Iterator[None]:
        before, commits = time.process_time(), self._store.commit
        yield
        committed = self._store.commit - commits
        self.cpu[name] += time.process_time() - before - committed
        self.cpu["commit"] += committed


def _delivered(each: Assignment, now: datetime) -> Result:
    attempt = attempt_of(each.account_id, each.delivery_id, each.event_id, now)
    return Result(each, attempt, NextStep(DeliveryStatus.DELIVERED))
