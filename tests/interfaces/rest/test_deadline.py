"""Every call, page and tool is cut off in time, except those that are meant to wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from cuepost.adapters.system_clock import SystemClock
from cuepost.interfaces.rest.table import OPERATIONS
from cuepost.interfaces.web.app import PAGES
from cuepost.ports.store import Store
from tests.application.harness import Harness
from tests.interfaces.rest.client import RULES, Api, opened, problem
from tests.support.coming_back import says_when_to_come_back

# Longer than any call takes that does not hang, also where several tests share a core.
SHORT = replace(RULES, request_timeout=0.5)


class HangingStore:
    """As behind a locked table, once it is told to."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.hangs = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Any]:
        if self.hangs:
            await asyncio.Event().wait()
        async with self._store.snapshot() as transaction:
            yield transaction

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Any]:
        if self.hangs:
            await asyncio.Event().wait()
        async with self._store.transaction() as transaction:
            yield transaction


@pytest.fixture
async def api(sqlite_harness: Harness) -> Api:
    store: Any = HangingStore(sqlite_harness.store)
    api = await opened(replace(sqlite_harness, store=store), SHORT)
    await api.done("GET", "/v1/projects")
    store.hangs = True
    return api


def test_only_what_is_meant_to_wait_is_exempt() -> None:
    assert [each.name for each in OPERATIONS if not each.has_deadline] == ["followEvents"]
    assert [each.path for each in PAGES if not each.has_deadline] == ["/settings/deliveries/live"]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [("GET", "/v1/projects", None), ("POST", "/v1/projects", {"name": "a"})],
)
async def test_a_store_that_hangs_is_told_in_time(
    api: Api, method: str, path: str, body: Any
) -> None:
    answer = await asyncio.wait_for(api.call(method, path, body), 10)
    assert problem(answer) == (503, "store_unavailable")
    assert says_when_to_come_back(answer.headers)
    assert "nothing was changed" in answer.json()["detail"]


async def test_so_is_one_that_hangs_when_the_key_is_looked_up(api: Api) -> None:
    api.harness.clock.advance(2)
    answer = await asyncio.wait_for(api.call("GET", "/v1/projects"), 10)
    assert problem(answer) == (503, "store_unavailable")


async def test_a_client_may_take_its_time_to_send_its_body(sqlite_harness: Harness) -> None:
    api = await opened(sqlite_harness, SHORT)

    async def slowly() -> AsyncIterator[bytes]:
        yield b'{"name":'
        await SystemClock().wait(1.5 * SHORT.request_timeout)
        yield b' "a"}'

    headers = {"Authorization": f"Bearer {api.owner}", "Content-Type": "application/json"}
    answer = await api.client.post("/v1/projects", content=slowly(), headers=headers)
    assert answer.status_code == 201
