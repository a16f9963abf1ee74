"""When the store is away or something is wrong inside, an agent hears a sentence, no traceback."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from cuepost.doors.mcp.calls import Calls, Told
from cuepost.doors.mcp.table import BY_NAME
from cuepost.ports.store import Contention, StoreUnavailable
from tests.application.world import World
from tests.doors.mcp.agent import Desk, opened


class Broken:
    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def page(self, *_: Any) -> Any:
        raise self._fault


async def told_by_broken(desk: Desk, fault: Exception) -> Told:
    broken: Any = Broken(fault)
    calls = Calls(replace(desk.world.service, webhooks=broken))
    return await calls.call(desk.caller, BY_NAME["webhooks_list"], {})


@pytest.mark.parametrize("fault", [StoreUnavailable("psql://secret"), Contention("row 7")])
async def test_a_store_that_is_away_is_said_without_details(
    sqlite_desk: Desk, fault: Exception
) -> None:
    told = await told_by_broken(sqlite_desk, fault)
    assert told == Told(
        "store_unavailable: The service cannot reach its store now; nothing was changed. "
        "Try again in a moment.",
        {
            "error": {
                "code": "store_unavailable",
                "message": "The service cannot reach its store now; nothing was changed. "
                "Try again in a moment.",
            }
        },
        is_error=True,
    )


async def test_a_bug_is_logged_and_not_told(
    sqlite_desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    told = await told_by_broken(sqlite_desk, RuntimeError("inner thoughts"))
    assert told.is_error
    assert told.data["error"]["code"] == "internal_error"
    assert "inner thoughts" not in told.text
    assert "inner thoughts" in caplog.text


async def test_the_first_calls_may_come_all_at_once(sqlite_desk: Desk) -> None:
    async def look() -> int:
        async with sqlite_desk.agent() as agent:
            return len((await agent.list_tools()).tools)

    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(look()) for _ in range(5)]
    assert {each.result() for each in looks} == {len(BY_NAME)}


async def test_what_cannot_be_loaded_ends_the_call_and_not_the_service(
    sqlite_desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuepost.doors.mcp.server", None)
    async with sqlite_desk.http() as http:
        with pytest.raises(ImportError):
            await http.post("/mcp", json={})
        assert (await http.get("/v1/webhooks")).status_code == 200
    monkeypatch.undo()
    async with sqlite_desk.agent() as agent:
        assert (await agent.list_tools()).tools


async def test_a_service_without_the_sdk_says_how_to_install_it(sqlite_world: World) -> None:
    async with (
        opened(sqlite_world, is_installed=False) as desk,
        desk.http() as http,
        desk.http("") as stranger,
    ):
        answer = await http.post("/mcp", json={})
        assert (answer.status_code, answer.json()["code"]) == (501, "mcp_not_installed")
        assert "pip install 'cuepost[mcp]'" in answer.json()["detail"]
        assert (await stranger.post("/mcp", json={})).status_code == 401
