"""An MCP server on standard input and output that forwards each request to the service."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import Server, ServerRequestContext
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    Implementation,
    ListPromptsRequest,
    ListPromptsResult,
    ListResourcesRequest,
    ListResourcesResult,
    ListToolsRequest,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    Result,
)
from mcp.types.version import MODERN_PROTOCOL_VERSIONS

from cuepost import __version__
from cuepost.interfaces.mcp.authentication import PATH

R = TypeVar("R", bound=Result)
Context = ServerRequestContext[Any, Any]
Paged = PaginatedRequestParams | None

SECONDS = 60
UNREACHABLE = "The cuepost service cannot be reached now."
_CLIENT_INFO = Implementation(name="cuepost mcp", version=__version__)


class CannotSpeak(Exception):
    """The service cannot be used; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Remote:
    """The running service. Each request uses its own connection, so that a restart or an outage of
    the service does not end the proxy."""

    address: str
    http: httpx2.AsyncClient
    era: str = "auto"
    instructions: str | None = None

    async def ask(self, request: Any, answer: type[R]) -> R:
        found: R | MCPError = MCPError(code=INTERNAL_ERROR, message=UNREACHABLE)
        try:
            async with self.connected() as client:
                found = await _response(client, request, answer)
        except* httpx2.HTTPError:
            pass
        if isinstance(found, MCPError):
            raise found
        return found

    def connected(self) -> Client:
        transport = streamable_http_client(self.address, http_client=self.http)
        return Client(transport, mode=self.era, client_info=_CLIENT_INFO, cache=None)


async def speak(url: str, key: str) -> None:
    """Serve until standard input ends."""
    async with connected_service(url, key) as remote:
        server = proxy_server(remote)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


@asynccontextmanager
async def connected_service(url: str, key: str) -> AsyncIterator[Remote]:
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=SECONDS) as http:
        remote = Remote(url + PATH, http)
        await _require_service(remote)
        async with remote.connected() as client:
            version, instructions = client.protocol_version, client.instructions
        era = version if version in MODERN_PROTOCOL_VERSIONS else "legacy"
        yield Remote(remote.address, http, era, instructions)


async def _response(client: Client, request: Any, answer: type[R]) -> R | MCPError:
    """The response of the service; errors are returned, too."""
    try:
        return await client.session.send_request(request, answer)
    except MCPError as refusal:
        return refusal


async def _require_service(remote: Remote) -> None:
    """Check the address and the key before MCP starts, to report errors in one line."""
    address = remote.address
    try:
        answer = await remote.http.get(address)
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise CannotSpeak(
            f"No response from {address}; check that the service is running."
        ) from error
    if answer.status_code == 405:
        return
    if answer.status_code == 401:
        raise CannotSpeak(f"The service at {address} rejected the API key in CUEPOST_API_KEY.")
    if answer.headers.get("content-type") == "application/problem+json":
        raise CannotSpeak(f"{address}: {answer.json()['detail']}")
    raise CannotSpeak(f"The server at {address} is not cuepost (status {answer.status_code}).")


def proxy_server(remote: Remote) -> Server[Any]:
    """A server that forwards every request, without its connection-specific metadata."""

    async def list_tools(context: Context, params: Paged) -> ListToolsResult:
        return await remote.ask(ListToolsRequest(), ListToolsResult)

    async def call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
        wanted = CallToolRequestParams(name=params.name, arguments=params.arguments)
        return await remote.ask(CallToolRequest(params=wanted), CallToolResult)

    async def list_resources(context: Context, params: Paged) -> ListResourcesResult:
        return await remote.ask(ListResourcesRequest(), ListResourcesResult)

    async def read_resource(
        context: Context, params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        wanted = ReadResourceRequestParams(uri=params.uri)
        return await remote.ask(ReadResourceRequest(params=wanted), ReadResourceResult)

    async def list_prompts(context: Context, params: Paged) -> ListPromptsResult:
        return await remote.ask(ListPromptsRequest(), ListPromptsResult)

    async def get_prompt(context: Context, params: GetPromptRequestParams) -> GetPromptResult:
        wanted = GetPromptRequestParams(name=params.name, arguments=params.arguments)
        return await remote.ask(GetPromptRequest(params=wanted), GetPromptResult)

    return Server(
        "cuepost",
        version=__version__,
        title="cuepost",
        instructions=remote.instructions,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_read_resource=read_resource,
        on_list_prompts=list_prompts,
        on_get_prompt=get_prompt,
    )
