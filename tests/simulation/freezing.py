"""A worker that stands still while the harness goes on, as a suspended process does."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar

from cuepost.ports.store import Action, Priority, Store, Transaction
from cuepost.ports.system import Clock
from cuepost.ports.transport import Exchange, Request
from cuepost.testing import ScriptedTransport, Sent

T = TypeVar("T")


async def _at_once() -> None: ...


def _warm() -> asyncio.Event:
    event = asyncio.Event()
    event.set()
    return event


@dataclass(slots=True)
class Freeze:
    """A task that waits for the outside world waits on while it holds.

    `moment` comes before each return from the outside, as when others use the core, and `lag`
    before each answer of the store, as when its thread is suspended.
    """

    moment: Callable[[], Awaitable[None]] = _at_once
    lag: Callable[[], Awaitable[None]] = _at_once
    _thawed: asyncio.Event = field(default_factory=_warm)

    @property
    def holds(self) -> bool:
        return not self._thawed.is_set()

    def freeze(self) -> None:
        self._thawed.clear()

    def thaw(self) -> None:
        self._thawed.set()

    async def pass_by(self) -> None:
        await self.moment()
        await self._thawed.wait()

    async def answer(self) -> None:
        await self.lag()
        await self.pass_by()


@dataclass(frozen=True, slots=True)
class FreezableClock:
    inner: Clock
    freeze: Freeze

    def now(self) -> datetime:
        return self.inner.now()

    def monotonic(self) -> float:
        return self.inner.monotonic()

    async def wait(self, seconds: float) -> None:
        await self.inner.wait(seconds)
        await self.freeze.pass_by()

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        await self.inner.wait_for(event, seconds)
        await self.freeze.pass_by()
        return event.is_set()


@dataclass(slots=True)
class FreezableTransport:
    """A receiver that has answered keeps its connection open, until the worker has crashed."""

    inner: ScriptedTransport
    freeze: Freeze
    tasks: asyncio.TaskGroup
    _has_crashed: bool = False
    _open: set[str] = field(default_factory=set)
    _in_flight: dict[asyncio.Task[None], Sent] = field(default_factory=dict)

    def start(self, request: Request, done: Callable[[Exchange | None], None]) -> bool:
        if self._has_crashed or request.url.text not in self._open:
            return False
        sent = self.inner.begin(request)
        task = self.tasks.create_task(self._tell(sent, done))
        self._in_flight[task] = sent
        task.add_done_callback(self._in_flight.pop)
        return True

    async def _tell(self, sent: Sent, done: Callable[[Exchange | None], None]) -> None:
        exchange = await self.inner.answered(sent)
        await self.freeze.pass_by()
        done(exchange)

    async def send(self, request: Request) -> Exchange:
        exchange = await self.inner.send(request)
        await self.freeze.pass_by()
        if exchange.status is not None:
            self._open.add(request.url.text)
        return exchange

    def crash(self) -> None:
        """Nothing more is answered, nor sent."""
        self._has_crashed = True
        for task, sent in list(self._in_flight.items()):
            task.cancel()
            self.inner.end(sent)


@dataclass(frozen=True, slots=True)
class FreezableStore:
    """Between transactions alone: no other caller gets on while one of them is open."""

    inner: Store
    freeze: Freeze

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        await self.freeze.pass_by()
        async with self.inner.transaction() as transaction:
            yield transaction
        await self.freeze.answer()

    async def write(self, action: Action[T], priority: Priority) -> T:
        await self.freeze.pass_by()
        made = await self.inner.write(action, priority)
        await self.freeze.answer()
        return made

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        await self.freeze.pass_by()
        async with self.inner.snapshot() as transaction:
            yield transaction
        await self.freeze.answer()

    @asynccontextmanager
    async def single_read(self) -> AsyncIterator[Transaction]:
        await self.freeze.pass_by()
        async with self.inner.single_read() as transaction:
            yield transaction
        await self.freeze.answer()

    async def check(self) -> None:
        await self.inner.check()

    async def prepare_days(self, now: datetime) -> None:
        await self.inner.prepare_days(now)
