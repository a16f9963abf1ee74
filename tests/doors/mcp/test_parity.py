"""Generated from the route table: what REST can do, agents can do, or it says here why not."""

from cuepost.doors.mcp.calls import Calls
from cuepost.doors.mcp.door import PlainSettings
from cuepost.doors.mcp.table import TOOLS
from tests.application.world import BASE_URL
from tests.doors.mcp.agent import Desk, arguments_of_everything
from tests.doors.use_cases import noting, used_by_rest

EXEMPT = {
    "milestones.report": "Milestones come from the processing pipeline, with the operator's key; "
    "an agent of an account must not be able to invent them.",
    **dict.fromkeys(
        (
            "listeners.register",
            "listeners.page",
            "listeners.follow",
            "listeners.acknowledge",
            "listeners.delete",
        ),
        "A program follows a stream, for hours and event by event, and sends each on to a local "
        "receiver; an agent, which is asked once, looks at the events instead.",
    ),
}
# It answers from the catalogue, without a use case.
WITHOUT_USE_CASE = {"listEventTypes": "event_types_list"}


async def used_by_tools(desk: Desk) -> set[str]:
    used: set[str] = set()
    arguments = await arguments_of_everything(desk)
    calls = Calls(noting(desk.world.service, used), PlainSettings(BASE_URL))
    for tool in sorted(TOOLS, key=lambda tool: tool.name == "webhooks_delete"):
        told = await calls.call(desk.caller, tool, arguments.get(tool.name, {}))
        assert not told.is_error, told.text
    return used


async def test_every_use_case_of_rest_is_a_tool_or_is_exempt(sqlite_desk: Desk) -> None:
    by_operation = await used_by_rest(
        sqlite_desk.world.service, sqlite_desk.owner, sqlite_desk.pipeline
    )
    assert {name for name, calls in by_operation.items() if not calls} == set(WITHOUT_USE_CASE)
    wanted = set().union(*by_operation.values())
    offered = await used_by_tools(sqlite_desk)
    assert wanted - offered == set(EXEMPT)


def test_what_needs_no_use_case_is_a_tool_as_well() -> None:
    assert set(WITHOUT_USE_CASE.values()) <= {tool.name for tool in TOOLS}
