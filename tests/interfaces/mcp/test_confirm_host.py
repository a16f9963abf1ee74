"""What cannot be taken back is done only with the name of the host that it concerns."""

from typing import Any

import pytest

from cuepost.interfaces.mcp.table import TOOLS
from tests.interfaces.mcp.agent import HOST, SERVICE_HOST, McpService, arguments_of_everything

DESTRUCTIVE = [tool.name for tool in TOOLS if tool.destructive]
WRONG = ["", "hooks.example.org", "example.com", f"https://{HOST}/cue", f"{HOST}.", "*"]


async def ways_to_destroy(mcp_service: McpService) -> list[tuple[str, dict[str, Any]]]:
    arguments = await arguments_of_everything(mcp_service)
    of_webhook = {"webhook_id": arguments["webhooks_get"]["webhook_id"], "confirm_host": HOST}
    ways = [(name, arguments[name]) for name in DESTRUCTIVE if name != "webhooks_update"]
    ways.append(("webhooks_update", {**of_webhook, "enabled": False}))
    ways.append(("webhooks_update", {**of_webhook, "url": f"https://{HOST}/elsewhere"}))
    return ways


@pytest.mark.parametrize("host", WRONG)
async def test_a_wrong_host_confirms_nothing(mcp_service: McpService, host: str) -> None:
    ways = await ways_to_destroy(mcp_service)
    assert {name for name, _ in ways} == set(DESTRUCTIVE)
    before = await mcp_service.stored()
    for name, arguments in ways:
        result = await mcp_service.result(name, **{**arguments, "confirm_host": host})
        assert (result.is_error, result.data["error"]["code"]) == (True, "host_not_confirmed"), name
        assert HOST not in result.text
        assert SERVICE_HOST not in result.text
    assert await mcp_service.stored() == before


async def test_no_host_confirms_nothing(mcp_service: McpService) -> None:
    ways = await ways_to_destroy(mcp_service)
    before = await mcp_service.stored()
    for name, arguments in ways:
        unconfirmed = {key: each for key, each in arguments.items() if key != "confirm_host"}
        result = await mcp_service.result(name, **unconfirmed)
        assert result.is_error
        assert result.data["error"]["code"] in {"missing_field", "host_not_confirmed"}
    assert await mcp_service.stored() == before


async def test_the_right_host_confirms(mcp_service: McpService) -> None:
    for name, arguments in await ways_to_destroy(mcp_service):
        if name != "webhooks_delete":
            await mcp_service.done(name, **arguments)
    one = (await mcp_service.harness.endpoint()).view.endpoint.id
    assert await mcp_service.done(
        "webhooks_delete", webhook_id=str(one), confirm_host=HOST.upper()
    ) == {
        "done": True,
        "id": str(one),
    }


async def test_the_host_of_one_endpoint_does_not_confirm_for_another(
    sqlite_mcp_service: McpService,
) -> None:
    await sqlite_mcp_service.harness.endpoint()
    other = await sqlite_mcp_service.harness.endpoint(url="https://hooks.example.net/cue")
    result = await sqlite_mcp_service.result(
        "webhooks_delete", webhook_id=str(other.view.endpoint.id), confirm_host=HOST
    )
    assert result.data["error"]["code"] == "host_not_confirmed"


async def test_what_takes_nothing_away_needs_no_confirmation(
    sqlite_mcp_service: McpService,
) -> None:
    webhook_id = str((await sqlite_mcp_service.harness.endpoint()).view.endpoint.id)
    changed = await sqlite_mcp_service.done(
        "webhooks_update",
        webhook_id=webhook_id,
        events=["project.ready"],
        description="Staging",
        enabled=True,
    )
    assert (changed["events"], changed["description"]) == (["project.ready"], "Staging")
