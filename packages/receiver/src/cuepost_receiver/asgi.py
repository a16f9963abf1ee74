"""An inbox as an ASGI application, for Starlette, FastAPI and any ASGI server."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any

from cuepost_receiver.body_limit import CONTENT_TYPE, MOST_BYTES, POST_ONLY, TOO_LARGE
from cuepost_receiver.inbox import Answer, Inbox

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class AsgiInbox:
    """In FastAPI: `FastAPI(lifespan=hook.lifespan)`, with `Route("/cuepost", hook)` as a route."""

    def __init__(self, inbox: Inbox, *, most_bytes: int = MOST_BYTES) -> None:
        self.inbox = inbox
        self._most_bytes = most_bytes

    @asynccontextmanager
    async def lifespan(self, _app: object = None) -> AsyncIterator[None]:
        """Start handling, including events left over from before; stop cleanly at shutdown."""
        self.inbox.start()
        try:
            yield
        finally:
            await asyncio.to_thread(self.inbox.close)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            answer = await self._answer(scope, receive)
            if answer is not None:
                await _send(answer, send)

    async def _answer(self, scope: Message, receive: Receive) -> Answer | None:
        if scope["method"] != "POST":
            return POST_ONLY
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            body += message.get("body", b"")
            if len(body) > self._most_bytes:
                return TOO_LARGE
            if not message.get("more_body", False):
                break
        return await asyncio.to_thread(self.inbox.receive, body, scope["headers"])

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.lifespan():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})


async def _send(answer: Answer, send: Send) -> None:
    headers = [
        (b"content-type", CONTENT_TYPE.encode()),
        (b"content-length", str(len(answer.body)).encode()),
    ]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
