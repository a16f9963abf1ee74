"""The table of tools, in the order in which they are listed."""

from collections.abc import Mapping
from types import MappingProxyType

from cuepost.interfaces.mcp import accounts, deliveries, diagnosing, history, projects, webhooks
from cuepost.interfaces.mcp.tool import Tool

TOOLS: tuple[Tool, ...] = (
    *diagnosing.TOOLS,
    *webhooks.TOOLS,
    *deliveries.TOOLS,
    *history.TOOLS,
    *projects.TOOLS,
    *accounts.TOOLS,
)
BY_NAME: Mapping[str, Tool] = MappingProxyType({tool.name: tool for tool in TOOLS})
