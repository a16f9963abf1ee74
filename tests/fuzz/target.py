"""All interfaces of a service in process, spoken to in raw bytes as a server would pass them on."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path

from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp, Message, Scope

from cuepost.adapters.argon2_passwords import Argon2Passwords
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.application.service import Rules, SystemPorts, assemble
from cuepost.domain.access import ACCOUNT_SCOPES, OPERATOR_SCOPES, SERVICE_SCOPES
from cuepost.interfaces.mcp.app import McpApp
from cuepost.interfaces.mcp.authentication import own_hosts
from cuepost.interfaces.media.app import media_routes
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import create_pages
from cuepost.interfaces.web.protection import form_token
from cuepost.testing import RepeatableEntropy, VirtualClock
from tests.application.harness import (
    BASE_URL,
    OPERATOR,
    POLICY,
    Harness,
    local_media,
    opened_harness,
)
from tests.interfaces.rest.client import Api
from tests.interfaces.web.page_client import CHEAP

PLENTY = 1_000_000_000
LIMIT_SECONDS = 10
RULES = Rules(
    BASE_URL,
    POLICY,
    endpoint_limit=PLENTY,
    requests_per_minute=PLENTY,
    service_requests_per_minute=PLENTY,
)

Headers = Sequence[tuple[bytes, bytes]]


@dataclass(frozen=True)
class FuzzTarget:
    """`ids` are of things that exist; `cookie` is someone's who is signed in."""

    app: ASGIApp
    account_key: str
    service_key: str
    operator_key: str
    ids: dict[str, str]
    cookie: str
    media_link: str
    portal: BlockingPortal

    @property
    def form_token(self) -> str:
        return form_token(self.cookie)

    def answer(
        self,
        method: str,
        path: str,
        *,
        query: bytes = b"",
        headers: Headers = (),
        body: bytes = b"",
    ) -> tuple[int, bytes]:
        """Status and body of the one answer that comes, in time."""
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "https",
            "path": path,
            "raw_path": path.encode("utf-8", "replace"),
            "query_string": query,
            "root_path": "",
            "headers": list(headers),
            "client": ("192.0.2.7", 4711),
            "server": ("cuepost.example.com", 443),
        }
        sent = self.portal.call(_asked, self.app, scope, body)
        [start] = [each for each in sent if each["type"] == "http.response.start"]
        return start["status"], b"".join(each.get("body", b"") for each in sent)


async def _asked(app: ASGIApp, scope: Scope, body: bytes) -> list[Message]:
    sent: list[Message] = []
    left: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return left.pop() if left else {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    async with asyncio.timeout(LIMIT_SECONDS):
        await app(scope, receive, send)
    return sent


@contextmanager
def opened(store: Path) -> Iterator[FuzzTarget]:
    """In a loop of its own, so that the examples need not know of it."""
    with (
        start_blocking_portal("asyncio", {"use_uvloop": True}) as portal,
        portal.wrap_async_context_manager(_opened(store, portal)) as target,
    ):
        yield target


@asynccontextmanager
async def _opened(path: Path, portal: BlockingPortal) -> AsyncIterator[FuzzTarget]:
    clock = VirtualClock()
    store = SqliteStore(path, clock)
    await store.open()
    harness = await opened_harness(store, clock, local_media(path.with_name("media")))
    system = SystemPorts(
        clock, harness.ids, RepeatableEntropy("fuzz"), harness.box, Argon2Passwords(CHEAP)
    )
    service = assemble(store, system, RULES, harness.media)
    harness = replace(harness, service=service)
    assert service.downloads is not None
    interface = McpApp(service, BASE_URL, own_hosts(BASE_URL, "127.0.0.1", 8000))
    app = create_app(
        service,
        base_url=BASE_URL,
        health=HealthChecks(store.check),
        further_routes=[
            *media_routes(service),
            *create_pages(service, base_url=BASE_URL, is_stopping=lambda: True),
            *interface.routes(),
        ],
    )
    async with interface.running():
        yield await _populated(harness, app, portal)
    await store.close()


async def _populated(harness: Harness, app: ASGIApp, portal: BlockingPortal) -> FuzzTarget:
    keys = Api(harness, None, "", "")  # type: ignore[arg-type]  # only keys are made with it
    service = harness.service
    endpoint = (await harness.endpoint()).view.endpoint
    project = await harness.project()
    artifact = await service.media.put(
        project.id, BytesIO(b"film" * 99), 396, kind="video", name="a.mp4", content_type="video/mp4"
    )
    await harness.report(harness.milestone(project, artifacts=(artifact,)))
    [delivery] = await harness.deliveries()
    result = await harness.see(service.results.get, harness.owner, project.id)
    link = await harness.do(service.sign_in.make_link, OPERATOR, harness.account.id)
    token = link.url.rpartition("/")[2]
    session = await harness.do(service.sign_in.by_link, token, None)
    return FuzzTarget(
        app,
        await keys.new_key(ACCOUNT_SCOPES),
        await keys.new_key(SERVICE_SCOPES),
        await keys.new_key(OPERATOR_SCOPES),
        {
            "webhookId": str(endpoint.id),
            "projectId": str(project.id),
            "deliveryId": str(delivery.id),
            "eventId": str(delivery.event_id),
            "accountId": str((await harness.new_owner()).account),
        },
        session.token,
        result.links[0].url.removeprefix(BASE_URL),
        portal,
    )
