"""When the store is away or something is wrong inside, an agent hears a sentence, no traceback."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

import pytest

from cuepost.interfaces.mcp.calls import Calls, ToolResult
from cuepost.interfaces.mcp.table import BY_NAME
from cuepost.ports.store import Contention, StoreUnavailable
from tests.application.harness import Harness
from tests.interfaces.mcp.agent import ACCOUNT_TOOLS, McpService, opened
from tests.support.coming_back import says_when_to_come_back


class Broken:
    def __init__(self, fault: Exception) -> None:
        self._fault = fault

    async def page(self, *_: Any) -> Any:
        raise self._fault


async def told_by_broken(mcp_service: McpService, fault: Exception) -> ToolResult:
    broken: Any = Broken(fault)
    calls = Calls(replace(mcp_service.harness.service, webhooks=broken))
    return await calls.call(mcp_service.caller, BY_NAME["webhooks_list"], {})


@pytest.mark.parametrize("fault", [StoreUnavailable("psql://secret"), Contention("row 7")])
async def test_a_store_that_is_away_is_said_without_details(
    sqlite_mcp_service: McpService, fault: Exception
) -> None:
    result = await told_by_broken(sqlite_mcp_service, fault)
    wait = result.data["error"].pop("retry_after_seconds")
    assert says_when_to_come_back({"retry-after": wait})
    assert result == ToolResult(
        "store_unavailable: The service cannot reach its store; nothing was changed. "
        "Try again in a moment.",
        {
            "error": {
                "code": "store_unavailable",
                "message": "The service cannot reach its store; nothing was changed. "
                "Try again in a moment.",
            }
        },
        is_error=True,
    )


async def test_a_bug_is_logged_and_not_told(
    sqlite_mcp_service: McpService, caplog: pytest.LogCaptureFixture
) -> None:
    result = await told_by_broken(sqlite_mcp_service, RuntimeError("inner thoughts"))
    assert result.is_error
    assert result.data["error"]["code"] == "internal_error"
    assert "inner thoughts" not in result.text
    assert "inner thoughts" in caplog.text


async def test_the_first_calls_may_come_all_at_once(sqlite_mcp_service: McpService) -> None:
    async def look() -> int:
        async with sqlite_mcp_service.agent() as agent:
            return len((await agent.list_tools()).tools)

    async with asyncio.TaskGroup() as group:
        looks = [group.create_task(look()) for _ in range(5)]
    assert {each.result() for each in looks} == {len(ACCOUNT_TOOLS)}


async def test_what_cannot_be_loaded_ends_the_call_and_not_the_service(
    sqlite_mcp_service: McpService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cuepost.interfaces.mcp.server", None)
    async with sqlite_mcp_service.http() as http:
        with pytest.raises(ImportError):
            await http.post("/mcp", json={})
        assert (await http.get("/v1/webhooks")).status_code == 200
    monkeypatch.undo()
    async with sqlite_mcp_service.agent() as agent:
        assert (await agent.list_tools()).tools


async def test_a_service_without_the_sdk_says_how_to_install_it(sqlite_harness: Harness) -> None:
    async with (
        opened(sqlite_harness, is_installed=False) as mcp_service,
        mcp_service.http() as http,
        mcp_service.http("") as stranger,
    ):
        answer = await http.post("/mcp", json={})
        assert (answer.status_code, answer.json()["code"]) == (501, "mcp_not_installed")
        assert "pip install 'cuepost[mcp]'" in answer.json()["detail"]
        assert (await stranger.post("/mcp", json={})).status_code == 401
