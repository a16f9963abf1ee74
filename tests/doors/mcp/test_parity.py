"""Generated from the route table: what REST can do, agents can do, or a list says why not."""

from cuepost.doors.mcp.calls import Calls
from cuepost.doors.mcp.table import TOOLS
from tests.doors.exemptions import MCP, WITHOUT_USE_CASE, exempt_from
from tests.doors.mcp.agent import Desk, arguments_of_everything
from tests.doors.use_cases import noting, used_by_rest


async def used_by_tools(desk: Desk) -> set[str]:
    used: set[str] = set()
    arguments = await arguments_of_everything(desk)
    calls = Calls(noting(desk.world.service, used))
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
    assert wanted - offered == exempt_from(MCP)


def test_what_needs_no_use_case_is_a_tool_as_well() -> None:
    assert {doors[MCP] for doors in WITHOUT_USE_CASE.values()} <= {tool.name for tool in TOOLS}
