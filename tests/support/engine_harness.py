"""The delivery engine on a engine: production code, a real store, time that jumps, no network."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import endpoints
from cuepost.domain.attempt import Attempt
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.retry_schedule import RetrySchedule
from cuepost.engine.attempt_pipeline import AttemptPipeline, Jitter
from cuepost.engine.dispatcher import Dispatcher
from cuepost.engine.lane_board import Capacity
from cuepost.engine.shared_dispatcher import SharedDispatcher
from cuepost.ports.dispatch import Lane
from cuepost.ports.store import Store
from cuepost.ports.system import Clock
from cuepost.ports.telemetry import NoTelemetry, Telemetry
from cuepost.ports.transport import Transport
from cuepost.testing import START, ScriptedTransport, Sent, VirtualClock
from tests.application.harness import RULES, Harness, opened_harness
from tests.support.jumping_loop import run_jumping
from tests.support.repeatable_store import RepeatableStore
from tests.support.stepping_clock import SteppingClock
from tests.support.store_rows import AnyStore, compact, contradictions, empty, rows, run
from tests.support.watched_store import Watch, WatchedStore

T = TypeVar("T")

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
USER_AGENT = "cuepost/test"
PAUSES = (timedelta(seconds=60), timedelta(seconds=300))
ANY_LIMIT = replace(RULES, endpoint_limit=10_000)
# Thousands of polls and heartbeats would take longer than everything else; who needs them says so.
RARELY = timedelta(minutes=10)


@dataclass(slots=True)
class EngineHarness:
    harness: Harness
    store: WatchedStore
    clock: SteppingClock
    transport: ScriptedTransport
    jitter: Jitter = field(default=lambda: 0.0)
    policy: EgressPolicy = field(default_factory=EgressPolicy)
    telemetry: Telemetry = field(default_factory=NoTelemetry)

    @property
    def sent(self) -> list[Sent]:
        return self.transport.sent

    @property
    def is_embedded(self) -> bool:
        return isinstance(self.store.inner, SqliteStore)

    def pipeline(
        self, clock: Clock | None = None, transport: Transport | None = None
    ) -> AttemptPipeline:
        return AttemptPipeline(
            clock=clock or self.clock,
            box=self.harness.box,
            policy=self.policy,
            transport=transport or self.transport,
            schedule=RetrySchedule(PAUSES),
            jitter=self.jitter,
            timeout=timedelta(seconds=15),
            user_agent=USER_AGENT,
        )

    def dispatcher(
        self,
        store: Store | None = None,
        *,
        attempts: int = 64,
        cap: int = 8,
        lease: timedelta = HOUR,
        longest_sleep: timedelta = RARELY,
        shared: bool | None = None,
        clock: Clock | None = None,
        transport: Transport | None = None,
    ) -> Dispatcher:
        """With `shared`, one of several workers; by default only on PostgreSQL."""
        kind = Dispatcher
        if shared or (shared is None and not self.is_embedded):
            kind = SharedDispatcher
        return kind(
            store or self.store,
            self.pipeline(clock, transport),
            clock or self.clock,
            self.harness.ids,
            capacity=Capacity(attempts, cap),
            longest_sleep=longest_sleep,
            telemetry=self.telemetry,
            lease=lease,
        )

    @asynccontextmanager
    async def delivering(
        self, dispatcher: Dispatcher | None = None, *, direct: bool = True
    ) -> AsyncIterator[Dispatcher]:
        """A dispatcher at work; `direct` says that it gets what the service commits."""
        dispatcher = dispatcher or self.dispatcher()
        if direct:
            self.store.handover = dispatcher
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(dispatcher.run())
            try:
                await self.clock.wait(0)
                yield dispatcher
            finally:
                dispatcher.stop()
                await asyncio.wait([working])
                self.store.handover = NoHandover()

    async def take_over(self) -> None:
        """Before the only worker of an embedded store starts: the one before it has ended."""
        if self.is_embedded:
            await self.harness.do(lambda transaction: transaction.queue.remove_all_workers())

    @asynccontextmanager
    async def crashing(self, dispatcher: Dispatcher | None = None) -> AsyncIterator[Dispatcher]:
        """A dispatcher that is gone from one moment to the next when the block ends."""
        dispatcher = dispatcher or self.dispatcher()
        self.store.handover = dispatcher
        async with asyncio.TaskGroup() as tasks:
            working = tasks.create_task(dispatcher.run())
            await self.clock.wait(0)
            yield dispatcher
            working.cancel()
        self.store.handover = NoHandover()

    async def later(self, duration: timedelta = timedelta(0)) -> None:
        """Let so much time pass, with everything that happens in it."""
        await self.clock.wait(duration.total_seconds())
        # Actions of that very instant come first.
        await self.clock.wait(0)

    async def sql(self, statement: sa.Executable) -> int:
        """Past the records; how many rows it touched."""
        return await _really(self.store, run(self.store.inner, statement))

    async def rows(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
        return await _really(self.store, rows(self.store.inner, statement))

    async def lanes(self) -> list[Lane]:
        """Of all endpoints, in the order in which they were made."""
        numbers = await self.rows(sa.select(endpoints.c.number).order_by(endpoints.c.number))
        return [row.number for row in numbers]

    def offsets(self) -> list[float]:
        """When each request began, in seconds after the first one."""
        return [(each.at - self.sent[0].at).total_seconds() for each in self.sent]

    async def attempts(self, delivery_id: UUID) -> list[Attempt]:
        account = self.harness.account.id
        return await self.harness.see(lambda t: t.attempts.of_delivery(account, delivery_id))


Scenario = Callable[[EngineHarness], Awaitable[None]]
RunScenarios = Callable[..., None]


@dataclass(frozen=True, slots=True)
class ScenarioRunner:
    """Puts scenarios on engine, each with an empty store and a clock that stands at the start."""

    migrated_file: Path
    folder: Path
    database_url: str | None = None
    start: datetime = START

    def run(self, *scenarios: Scenario) -> None:
        clock = SteppingClock(self.start)
        stores: list[WatchedStore] = []

        def awaits_reality() -> bool:
            return any(each.watch.in_progress for each in stores)

        async def run_all() -> None:
            store = WatchedStore(self._store(clock))
            stores.append(store)
            await _really(store, self._open(store.inner))
            try:
                for scenario in scenarios:
                    await _really(store, empty(store.inner))
                    clock.restart()
                    store.watch = Watch()
                    await _perform(scenario, store, clock)
                    assert await _really(store, contradictions(store.inner)) == []
            finally:
                await _really(store, store.inner.close())

        run_jumping(run_all(), clock.jump, awaits_reality if self.database_url else None)

    def _store(self, clock: VirtualClock) -> AnyStore:
        if self.database_url is not None:
            return PostgresStore(self.database_url)
        path = self.folder / "cuepost.db"
        shutil.copyfile(self.migrated_file, path)
        return RepeatableStore(path, clock)

    async def _open(self, store: AnyStore) -> None:
        if isinstance(store, PostgresStore):
            await store.open(START)
        else:
            await store.open()


async def _perform(scenario: Scenario, store: WatchedStore, clock: SteppingClock) -> None:
    harness = (await opened_harness(store, clock)).reassembled(ANY_LIMIT)
    await scenario(EngineHarness(harness, store, clock, ScriptedTransport(clock)))


async def _really(store: WatchedStore, work: Awaitable[T]) -> T:
    with store.watch.working():
        return await work


def migrated_file(folder: Path) -> Path:
    async def make() -> None:
        store = SqliteStore(path, VirtualClock())
        await store.open()
        await store.close()

    path = folder / "migrated.db"
    asyncio.run(make())
    compact(path)
    return path


def migrate_database(url: str) -> None:
    async def make() -> None:
        store = PostgresStore(url)
        await store.migrate(START)
        await store.close()

    asyncio.run(make())


def instants(sent: Sequence[Sent]) -> list[datetime]:
    return [each.at for each in sent]
