"""The MCP server, built with the SDK from the tables of tools, resources and the prompt.

Importing the SDK takes about a second and 25 MB, so this module is imported at the first call.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

from mcp.server import CacheHint, Server, ServerRequestContext
from mcp.server.caching import CacheableMethod
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp.types import Tool as ListedTool

from cuepost import __version__
from cuepost.domain.access import Caller
from cuepost.interfaces.mcp import prompts
from cuepost.interfaces.mcp.calls import Calls
from cuepost.interfaces.mcp.resources import BY_URI, RESOURCES, Readable
from cuepost.interfaces.mcp.schemas import arguments_of, outline_of
from cuepost.interfaces.mcp.table import BY_NAME, TOOLS
from cuepost.interfaces.mcp.tool import Tool
from cuepost.interfaces.wire_models.request_notes import OPERATION

Context = ServerRequestContext[Any, Any]
CallerOf = Callable[[Context], Caller]

LARGEST_REQUEST = 256 * 1024
_STATIC = CacheHint(ttl_ms=3_600_000, scope="public")
_CACHING: dict[CacheableMethod, CacheHint] = {
    "tools/list": CacheHint(ttl_ms=1_000, scope="private"),
    "resources/list": _STATIC,
    "resources/read": _STATIC,
    "prompts/list": _STATIC,
}


def build_server(calls: Calls, caller_of: CallerOf) -> Server[Any]:
    """`caller_of` returns the authenticated caller of a request."""

    async def list_tools(
        context: Context, params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        caller = caller_of(context)
        return ListToolsResult(tools=[listed(tool) for tool in TOOLS if tool.allows(caller)])

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(code=INVALID_PARAMS, message="There is no tool with this name.")
        if context.request is not None:
            context.request.scope[OPERATION] = f"mcp:{tool.name}"
        result = await calls.call(caller_of(context), tool, params.arguments or {})
        return CallToolResult(
            content=[TextContent(text=each) for each in (result.text, result.remark) if each],
            structured_content=result.data,
            is_error=result.is_error,
        )

    return Server(
        "cuepost",
        version=__version__,
        title="cuepost",
        instructions=prompts.INSTRUCTIONS,
        cache_hints=_CACHING,
        get_tool_input_schema=_input_schema,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=_list_resources,
        on_read_resource=_read_resource,
        on_list_prompts=_list_prompts,
        on_get_prompt=_get_prompt,
    )


def build_sessions(calls: Calls, caller_of: CallerOf) -> StreamableHTTPSessionManager:
    """Stateless, so that any process can handle any request."""
    return StreamableHTTPSessionManager(
        build_server(calls, caller_of),
        stateless=True,
        json_response=True,
        max_request_body_size=LARGEST_REQUEST,
    )


@cache
def listed(tool: Tool) -> ListedTool:
    return ListedTool(
        name=tool.name,
        title=tool.title,
        description=f"{tool.description} Returns {outline_of(tool.answer)}.",
        input_schema=arguments_of(tool.arguments),
        annotations=ToolAnnotations(
            read_only_hint=tool.reads,
            destructive_hint=tool.destructive,
            idempotent_hint=tool.idempotent or tool.reads,
            open_world_hint=tool.reaches_out,
        ),
    )


def _input_schema(name: str) -> dict[str, Any] | None:
    tool = BY_NAME.get(name)
    return arguments_of(tool.arguments) if tool else None


async def _list_resources(
    context: Context, params: PaginatedRequestParams | None
) -> ListResourcesResult:
    return ListResourcesResult(resources=[_resource(each) for each in RESOURCES])


def _resource(readable: Readable) -> Resource:
    return Resource(
        uri=readable.uri,
        name=readable.name,
        title=readable.title,
        description=readable.description,
        mime_type=readable.media_type,
    )


async def _read_resource(context: Context, params: ReadResourceRequestParams) -> ReadResourceResult:
    found = BY_URI.get(str(params.uri))
    if found is None:
        raise MCPError(code=INVALID_PARAMS, message="There is no resource with this URI.")
    text = TextResourceContents(uri=found.uri, mime_type=found.media_type, text=found.text())
    return ReadResourceResult(contents=[text])


async def _list_prompts(
    context: Context, params: PaginatedRequestParams | None
) -> ListPromptsResult:
    arguments = [
        PromptArgument(name=name, description=meaning, required=False)
        for name, meaning in prompts.ARGUMENTS.items()
    ]
    prompt = Prompt(
        name=prompts.NAME,
        title=prompts.TITLE,
        description=prompts.DESCRIPTION,
        arguments=arguments,
    )
    return ListPromptsResult(prompts=[prompt])


async def _get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
    if params.name != prompts.NAME:
        raise MCPError(code=INVALID_PARAMS, message="There is no prompt with this name.")
    text = prompts.debug_webhook(params.arguments or {})
    message = PromptMessage(role="user", content=TextContent(text=text))
    return GetPromptResult(description=prompts.DESCRIPTION, messages=[message])
