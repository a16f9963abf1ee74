"""An agent before the MCP interface: the real client of the SDK, in process or over ASGI."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import TextContent, TextResourceContents
from starlette.applications import Starlette

from cuepost.application.service import Rules
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    Caller,
    Interface,
    KeyKind,
    Scope,
    kind_of,
)
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.mcp.app import McpApp
from cuepost.interfaces.mcp.authentication import own_hosts
from cuepost.interfaces.mcp.calls import Calls, ToolResult
from cuepost.interfaces.mcp.server import build_server
from cuepost.interfaces.mcp.table import BY_NAME, TOOLS
from cuepost.interfaces.mcp.tool import Tool
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from tests.application.harness import BASE_URL, OPERATOR, Harness
from tests.interfaces.rest.client import attempt_of

# "auto" finds out by asking, and finds the modern one.
ERAS = ("auto", "legacy")
WAYS = ("in process", "asgi")
HOST = "hooks.example.com"
SERVICE_HOST = "cuepost.example.com"
RULES = Rules(BASE_URL, EgressPolicy(), endpoint_limit=50, requests_per_minute=10_000)

OPERATOR_TOOLS = [tool for tool in TOOLS if tool.scope in OPERATOR_SCOPES]
ACCOUNT_TOOLS = [tool for tool in TOOLS if tool not in OPERATOR_TOOLS]


@dataclass(frozen=True)
class McpService:
    """The whole service with its MCP interface, and keys to it."""

    harness: Harness
    app: Starlette
    owner: str = ""
    pipeline: str = ""
    operator: str = ""

    @property
    def caller(self) -> Caller:
        return replace(self.harness.owner, interface=Interface.MCP)

    def caller_of(self, tool: Tool) -> Caller:
        by_operator = replace(OPERATOR, interface=Interface.MCP)
        return by_operator if tool in OPERATOR_TOOLS else self.caller

    def http(self, key: str | None = None) -> httpx2.AsyncClient:
        """As the owner, unless another key is given; an empty one means none."""
        token = self.owner if key is None else key
        return httpx2.AsyncClient(
            transport=httpx2.ASGITransport(self.app, client=("192.0.2.7", 4711)),
            base_url=BASE_URL,
            headers={"Authorization": f"Bearer {token}"} if token else {},
        )

    @asynccontextmanager
    async def agent(
        self, *, era: str = ERAS[0], way: str = "asgi", key: str | None = None
    ) -> AsyncIterator[Client]:
        if way == "in process":
            calls = Calls(self.harness.service)
            async with Client(build_server(calls, lambda _: self.caller), mode=era) as client:
                yield client
            return
        async with self.http(key) as http:
            transport = streamable_http_client(f"{BASE_URL}/mcp", http_client=http)
            async with Client(transport, mode=era) as client:
                yield client

    async def result(self, tool: str, /, **arguments: Any) -> ToolResult:
        """The quick way, past protocol and authentication."""
        calls = Calls(self.harness.service)
        return await calls.call(self.caller_of(BY_NAME[tool]), BY_NAME[tool], arguments)

    async def done(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        result = await self.result(tool, **arguments)
        assert not result.is_error, result.text
        return result.data

    async def new_key(self, scopes: Iterable[Scope], account_id: UUID | None = None) -> str:
        chosen = frozenset(scopes)
        is_account = kind_of(chosen) is KeyKind.ACCOUNT
        account = account_id or self.harness.account.id if is_account else None
        made = await self.harness.do(
            self.harness.service.access.create_key, OPERATOR, account, name="test", scopes=chosen
        )
        return made.token

    async def stored(self) -> dict[str, Any]:
        """Every row of every table but the keys, which note when they were last used."""
        rows = await self.harness.dump()
        del rows["api_keys"]
        return rows


@asynccontextmanager
async def opened(
    harness: Harness, rules: Rules = RULES, *, is_installed: bool = True
) -> AsyncIterator[McpService]:
    harness = harness.reassembled(rules)
    hosts = own_hosts(BASE_URL, "127.0.0.1", 8000)
    interface = McpApp(harness.service, BASE_URL, hosts, is_installed=is_installed)
    app = create_app(
        harness.service,
        base_url=BASE_URL,
        health=HealthChecks(harness.store.check),
        further_routes=interface.routes(),
    )
    mcp_service = McpService(harness, app)
    async with interface.running():
        yield replace(
            mcp_service,
            owner=await mcp_service.new_key(ACCOUNT_SCOPES),
            pipeline=await mcp_service.new_key(SERVICE_SCOPES),
            operator=await mcp_service.new_key(OPERATOR_SCOPES),
        )


async def failed(harness: Harness, delivery: Delivery, **answer: Any) -> None:
    """The delivery was tried once, was answered so, and is not tried again."""
    attempt = attempt_of(delivery, **answer)
    await harness.do(lambda transaction: transaction.attempts.add([attempt]))
    await harness.count_attempts(delivery, 1)
    await harness.end(delivery, DeliveryStatus.FAILED)


def text_in(part: object) -> str:
    """Of a content block or of a resource."""
    assert isinstance(part, TextContent | TextResourceContents)
    return part.text


async def arguments_of_everything(mcp_service: McpService) -> dict[str, dict[str, Any]]:
    """For each tool, arguments with which it succeeds; to be called in the order of the table."""
    harness = mcp_service.harness
    webhook_id = str((await harness.endpoint()).view.endpoint.id)
    spare_id = str((await harness.endpoint(url=f"https://{HOST}/spare")).view.endpoint.id)
    delivery, tried = await harness.complete_to(webhook_id), await harness.complete_to(webhook_id)
    for each in (delivery, tried):
        await failed(harness, each)
    one, two, three = [str((await harness.project()).id) for _ in range(3)]
    job = await mcp_service.done(
        "deliveries_retry_many", webhook_id=webhook_id, since="2026-01-01T00:00:00Z", dry_run=False
    )
    of_webhook = {"webhook_id": webhook_id}
    of_delivery = {**of_webhook, "delivery_id": str(delivery.id)}
    confirmed = {"webhook_id": spare_id, "confirm_host": HOST}
    return {
        "signature_diagnose": of_delivery,
        "webhooks_get": of_webhook,
        "webhooks_create": {"url": f"https://{HOST}/new"},
        "webhooks_update": {**of_webhook, "description": "Production"},
        "webhooks_rotate_secret": confirmed,
        "webhooks_end_overlap": confirmed,
        "webhooks_delete": {**confirmed, "webhook_id": spare_id},
        "webhooks_send_test": of_webhook,
        "deliveries_get": of_delivery,
        "deliveries_retry": of_delivery,
        "deliveries_retry_many": {**of_webhook, "since": "2026-01-01T00:00:00Z"},
        "deliveries_get_bulk_retry": {**of_webhook, "retry_id": job["id"]},
        "deliveries_cancel_bulk_retry": {**of_webhook, "retry_id": job["id"]},
        "events_get": {"event_id": str(delivery.event_id)},
        "projects_create": {"name": "Trailer"},
        "projects_get": {"project_id": one},
        "projects_update": {"project_id": one, "name": "Teaser"},
        "projects_export": {"project_id": str(delivery.project_id)},
        "projects_cancel": {"project_id": two, "confirm_host": SERVICE_HOST},
        "projects_delete": {"project_id": three, "confirm_host": SERVICE_HOST},
        "projects_get_result": {"project_id": str(tried.project_id)},
        "accounts_get": {"account": str(harness.account.id)},
        "accounts_list": {"name_prefix": "test"},
        "accounts_members_list": {"account": str(harness.account.id)},
    }
