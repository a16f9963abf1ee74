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
from tests.application.world import RULES, World, opened_world

T = TypeVar("T")

LIMIT = 30


@dataclass(frozen=True, slots=True)
class Rivals:
    """Each has connections of its own; the clock and the ids are shared."""

    worlds: tuple[World, ...]
    rounds: int

    @classmethod
    def of(cls, world: World, *others: Store, rounds: int) -> "Rivals":
        rivals = (replace(world, store=store).reassembled(RULES) for store in others)
        return cls((world, *rivals), rounds)

    @property
    def world(self) -> World:
        return self.worlds[0]

    def each(self, place: int) -> World:
        return self.worlds[place % len(self.worlds)]

    async def race(self, *contenders: Coroutine[Any, Any, T]) -> list[T]:
        async with asyncio.timeout(LIMIT):
            return list(await asyncio.gather(*contenders))

    async def projects(self, count: int, caller: Caller | None = None) -> list[Project]:
        """Many in one transaction; they wait for the end of their export."""
        factory = Factory(self.world.ids, self.world.clock)
        account_id = (caller or self.world.owner).account
        made = [factory.project(account_id, status=ProjectStatus.EXPORTING) for _ in range(count)]

        async def add(transaction: Transaction) -> None:
            for project in made:
                await transaction.projects.add(project)

        await self.world.do(add)
        return made


@asynccontextmanager
async def rivals_on_sqlite(migrated: Path, path: Path) -> AsyncIterator[Rivals]:
    shutil.copyfile(migrated, path)
    # Whoever waits for the other's lock really waits, hence the real clock.
    one, other = (SqliteStore(path, SystemClock()) for _ in range(2))
    async with AsyncExitStack() as stack:
        for store in (one, other):
            await store.open()
            stack.push_async_callback(store.close)
        yield Rivals.of(await opened_world(one, VirtualClock()), other, rounds=5)


@asynccontextmanager
async def rivals_on_postgres(world: World) -> AsyncIterator[Rivals]:
    assert isinstance(world.store, PostgresStore)
    url = world.store.url
    async with AsyncExitStack() as stack:
        others = [PostgresStore(url) for _ in range(2)]
        for store in others:
            stack.push_async_callback(store.close)
        yield Rivals.of(world, *others, rounds=10)


async def outcome(work: Coroutine[Any, Any, object]) -> str:
    """`done`, or the code of the refusal."""
    try:
        await work
    except Refused as refused:
        return refused.code
    return "done"
