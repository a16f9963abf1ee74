"""The real service: REST interface, embedded store and dispatcher on a clock that jumps."""

import asyncio
import shutil
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import httpx2

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.ports.transport import Request
from cuepost.testing import Answer, ScriptedTransport
from tests.application.harness import OPERATOR, local_media, opened_harness
from tests.interfaces.rest.client import Api, opened
from tests.support.engine_harness import DAY, EngineHarness
from tests.support.jumping_loop import JumpingSelector
from tests.support.repeatable_store import RepeatableStore
from tests.support.stepping_clock import SteppingClock
from tests.support.store_rows import contradictions, empty
from tests.support.watched_store import WatchedStore

T = TypeVar("T")


@dataclass(slots=True)
class Running:
    engine: EngineHarness
    api: Api
    stranger: str
    working: "asyncio.Task[None]"


class ServiceUnderTest:
    """One store for all examples: each begins with empty tables."""

    def __init__(self, migrated_file: Path, folder: Path) -> None:
        self.clock = SteppingClock()
        self._loop = asyncio.SelectorEventLoop(JumpingSelector(self.clock.jump))
        path = folder / "cuepost.db"
        shutil.copyfile(migrated_file, path)
        self._store = RepeatableStore(path, self.clock)
        self._watched = WatchedStore(self._store)
        self._media = local_media(folder / "media")
        self._running: Running | None = None
        self.failing: set[str] = set()
        self.do(self._open())

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._loop.run_until_complete(work)

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def running(self) -> Running:
        assert self._running is not None
        return self._running

    @property
    def is_running(self) -> bool:
        return self._running is not None

    def begin(self) -> None:
        self.do(self._begin())

    def end(self) -> None:
        self.do(self._end())
        self._running = None

    def close(self) -> None:
        self.do(self._store.close())
        self._loop.close()

    def call(self, method: str, path: str, body: Any = None, **more: Any) -> httpx2.Response:
        """And whatever follows from it at the same instant."""

        async def call() -> httpx2.Response:
            answer = await self.running.api.call(method, path, body, **more)
            await self.running.engine.later()
            return answer

        return self.do(call())

    def pass_time(self, duration: timedelta) -> None:
        self.do(self._wait(duration))

    def set_access(self, *, is_open: bool) -> None:
        """An interface trusts what it knows of an account for a second."""
        harness = self.running.api.harness

        async def change() -> None:
            access = harness.service.access
            await harness.do(access.set_webhooks, OPERATOR, harness.account.id, is_open)
            await self._wait(timedelta(seconds=2))

        self.do(change())

    async def _wait(self, duration: timedelta) -> None:
        """With the one job at its end that is not left to chance here."""
        await self.running.engine.later(duration)
        await self.running.api.harness.service.maintenance.expiry.step(100)
        await self.running.engine.later()

    async def _open(self) -> None:
        await self._store.open()

    async def _begin(self) -> None:
        self.failing.clear()
        await empty(self._store)
        self.clock.restart()
        api = await opened(await opened_harness(self._watched, self.clock, self._media))
        receivers = ScriptedTransport(self.clock, self._answer)
        engine = EngineHarness(api.harness, self._watched, self.clock, receivers)
        dispatcher = engine.dispatcher(lease=30 * DAY, longest_sleep=30 * DAY)
        self._store.handover = dispatcher
        working = self._loop.create_task(dispatcher.run())
        self._running = Running(engine, api, await api.stranger(), working)
        await engine.later()

    async def _end(self) -> None:
        self.running.working.cancel()
        with suppress(asyncio.CancelledError):
            await self.running.working
        await self.running.api.client.aclose()
        self._store.handover = NoHandover()
        assert await contradictions(self._store) == []

    def _answer(self, request: Request) -> Answer:
        return Answer(500 if request.url.text in self.failing else 200)
