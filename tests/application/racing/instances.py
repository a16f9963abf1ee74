"""The same service several times on one store, as several processes have it."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock
from cuepost.domain.access import Caller
from cuepost.domain.errors import Refused
from cuepost.domain.project import Project, ProjectStatus
from cuepost.ports.store import Store, Transaction
from cuepost.testing import Factory, VirtualClock
from tests.application.harness import RULES, Harness, opened_harness

T = TypeVar("T")

LIMIT = 30


@dataclass(frozen=True, slots=True)
class Instances:
    """Each has connections of its own; the clock and the ids are shared."""

    harnesses: tuple[Harness, ...]
    rounds: int

    @classmethod
    def of(cls, harness: Harness, *others: Store, rounds: int) -> "Instances":
        instances = (replace(harness, store=store).reassembled(RULES) for store in others)
        return cls((harness, *instances), rounds)

    @property
    def harness(self) -> Harness:
        return self.harnesses[0]

    def each(self, place: int) -> Harness:
        return self.harnesses[place % len(self.harnesses)]

    async def race(self, *contenders: Coroutine[Any, Any, T]) -> list[T]:
        async with asyncio.timeout(LIMIT):
            return list(await asyncio.gather(*contenders))

    async def projects(self, count: int, caller: Caller | None = None) -> list[Project]:
        """Many in one transaction; they wait for the end of their export."""
        factory = Factory(self.harness.ids, self.harness.clock)
        account_id = (caller or self.harness.owner).account
        made = [factory.project(account_id, status=ProjectStatus.EXPORTING) for _ in range(count)]

        async def add(transaction: Transaction) -> None:
            for project in made:
                await transaction.projects.add(project)

        await self.harness.do(add)
        return made


@asynccontextmanager
async def instances_on_sqlite(migrated: Path, path: Path) -> AsyncIterator[Instances]:
    shutil.copyfile(migrated, path)
    # A process that waits for the other's lock really waits, hence the real clock.
    one, other = (SqliteStore(path, SystemClock()) for _ in range(2))
    async with AsyncExitStack() as stack:
        for store in (one, other):
            await store.open()
            stack.push_async_callback(store.close)
        yield Instances.of(await opened_harness(one, VirtualClock()), other, rounds=5)


@asynccontextmanager
async def instances_on_postgres(harness: Harness) -> AsyncIterator[Instances]:
    assert isinstance(harness.store, PostgresStore)
    url = harness.store.url
    async with AsyncExitStack() as stack:
        others = [PostgresStore(url) for _ in range(2)]
        for store in others:
            stack.push_async_callback(store.close)
        yield Instances.of(harness, *others, rounds=10)


async def outcome(work: Coroutine[Any, Any, object]) -> str:
    """`done`, or the code of the refusal."""
    try:
        await work
    except Refused as refused:
        return refused.code
    return "done"
