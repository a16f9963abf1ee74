"""What cannot be taken back is done only with the name of the host that it concerns."""

from typing import Any

import pytest

from cuepost.doors.mcp.table import TOOLS
from tests.doors.mcp.agent import HOST, SERVICE_HOST, Desk, arguments_of_everything

DESTRUCTIVE = [tool.name for tool in TOOLS if tool.destructive]
WRONG = ["", "hooks.example.org", "example.com", f"https://{HOST}/cue", f"{HOST}.", "*"]


async def ways_to_destroy(desk: Desk) -> list[tuple[str, dict[str, Any]]]:
    arguments = await arguments_of_everything(desk)
    of_webhook = {"webhook_id": arguments["webhooks_get"]["webhook_id"], "confirm_host": HOST}
    ways = [(name, arguments[name]) for name in DESTRUCTIVE if name != "webhooks_update"]
    ways.append(("webhooks_update", {**of_webhook, "enabled": False}))
    ways.append(("webhooks_update", {**of_webhook, "url": f"https://{HOST}/elsewhere"}))
    return ways


@pytest.mark.parametrize("host", WRONG)
async def test_a_wrong_host_confirms_nothing(desk: Desk, host: str) -> None:
    ways = await ways_to_destroy(desk)
    assert {name for name, _ in ways} == set(DESTRUCTIVE)
    before = await desk.stored()
    for name, arguments in ways:
        told = await desk.told(name, **{**arguments, "confirm_host": host})
        assert (told.is_error, told.data["error"]["code"]) == (True, "host_not_confirmed"), name
        assert HOST not in told.text
        assert SERVICE_HOST not in told.text
    assert await desk.stored() == before


async def test_no_host_confirms_nothing(desk: Desk) -> None:
    ways = await ways_to_destroy(desk)
    before = await desk.stored()
    for name, arguments in ways:
        unconfirmed = {key: each for key, each in arguments.items() if key != "confirm_host"}
        told = await desk.told(name, **unconfirmed)
        assert told.is_error
        assert told.data["error"]["code"] in {"missing_field", "host_not_confirmed"}
    assert await desk.stored() == before


async def test_the_right_host_confirms(desk: Desk) -> None:
    for name, arguments in await ways_to_destroy(desk):
        if name != "webhooks_delete":
            await desk.done(name, **arguments)
    one = (await desk.world.endpoint()).view.endpoint.id
    assert await desk.done("webhooks_delete", webhook_id=str(one), confirm_host=HOST.upper()) == {
        "done": True,
        "id": str(one),
    }


async def test_the_host_of_one_endpoint_does_not_confirm_for_another(sqlite_desk: Desk) -> None:
    await sqlite_desk.world.endpoint()
    other = await sqlite_desk.world.endpoint(url="https://hooks.example.net/cue")
    told = await sqlite_desk.told(
        "webhooks_delete", webhook_id=str(other.view.endpoint.id), confirm_host=HOST
    )
    assert told.data["error"]["code"] == "host_not_confirmed"


async def test_what_takes_nothing_away_needs_no_confirmation(sqlite_desk: Desk) -> None:
    webhook_id = str((await sqlite_desk.world.endpoint()).view.endpoint.id)
    changed = await sqlite_desk.done(
        "webhooks_update",
        webhook_id=webhook_id,
        events=["project.ready"],
        description="Staging",
        enabled=True,
    )
    assert (changed["events"], changed["description"]) == (["project.ready"], "Staging")
