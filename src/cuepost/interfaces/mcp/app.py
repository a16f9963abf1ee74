"""The ASGI application at /mcp; the MCP SDK is imported at the first call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from cuepost.application.service import Service
from cuepost.domain.access import Caller
from cuepost.interfaces.mcp.authentication import KEY_HOLDER, PATH, Authentication
from cuepost.interfaces.mcp.calls import Calls

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


class McpApp:
    def __init__(
        self,
        service: Service,
        base_url: str,
        hosts: frozenset[str],
        *,
        is_installed: bool = True,
    ) -> None:
        """Without the SDK (`is_installed` is False) every call is refused."""
        self._calls = Calls(service)
        self._authentication = Authentication(
            self._handle if is_installed else None, service, base_url, hosts
        )
        self._closing = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._sessions: asyncio.Future[StreamableHTTPSessionManager] | None = None

    def routes(self) -> list[Route]:
        return [Route(PATH, self._authentication)]

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Calls are only handled inside this block."""
        async with asyncio.TaskGroup() as self._group:
            yield
            self._closing.set()

    async def _handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        sessions = await asyncio.shield(self._opened())
        await sessions.handle_request(scope, receive, send)

    def _opened(self) -> "asyncio.Future[StreamableHTTPSessionManager]":
        assert self._group is not None, "the interface is not running"
        if self._sessions is None:
            self._sessions = asyncio.get_running_loop().create_future()
            self._group.create_task(self._host(self._sessions))
        return self._sessions

    async def _host(self, ready: "asyncio.Future[StreamableHTTPSessionManager]") -> None:
        try:
            sessions = await asyncio.to_thread(_load, self._calls)
        except ImportError as error:
            # An incomplete installation must not stop the process; the next call tries again.
            self._sessions = None
            ready.set_exception(error)
            return
        async with sessions.run():
            ready.set_result(sessions)
            await self._closing.wait()


def _load(calls: Calls) -> "StreamableHTTPSessionManager":
    """Runs in a thread: the import takes about a second and must not block deliveries."""
    from cuepost.interfaces.mcp.server import build_sessions  # noqa: PLC0415  # see above

    return build_sessions(calls, _key_holder)


def _key_holder(context: Any) -> Caller:
    caller: Caller = context.request.scope[KEY_HOLDER]
    return caller
