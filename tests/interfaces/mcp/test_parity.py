"""Generated from the route table: what REST can do, agents can do, or a list says why not."""

from cuepost.interfaces.mcp.calls import Calls
from cuepost.interfaces.mcp.table import TOOLS
from tests.interfaces.exemptions import MCP, WITHOUT_USE_CASE, exempt_from
from tests.interfaces.mcp.agent import McpService, arguments_of_everything
from tests.interfaces.use_cases import noting, used_by_rest


async def used_by_tools(mcp_service: McpService) -> set[str]:
    used: set[str] = set()
    arguments = await arguments_of_everything(mcp_service)
    calls = Calls(noting(mcp_service.harness.service, used))
    for tool in sorted(TOOLS, key=lambda tool: tool.name == "webhooks_delete"):
        result = await calls.call(mcp_service.caller_of(tool), tool, arguments.get(tool.name, {}))
        assert not result.is_error, result.text
    return used


async def test_every_use_case_of_rest_is_a_tool_or_is_exempt(
    sqlite_mcp_service: McpService,
) -> None:
    by_operation = await used_by_rest(
        sqlite_mcp_service.harness.service,
        sqlite_mcp_service.owner,
        sqlite_mcp_service.pipeline,
        sqlite_mcp_service.operator,
    )
    assert {name for name, calls in by_operation.items() if not calls} == set(WITHOUT_USE_CASE)
    wanted = set().union(*by_operation.values())
    offered = await used_by_tools(sqlite_mcp_service)
    assert wanted - offered == exempt_from(MCP)


def test_what_needs_no_use_case_is_a_tool_as_well() -> None:
    assert {interfaces[MCP] for interfaces in WITHOUT_USE_CASE.values()} <= {
        tool.name for tool in TOOLS
    }
