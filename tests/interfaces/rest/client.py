"""The REST interface in process, on a real store, and someone who calls it."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import httpx2

from cuepost.application.service import Rules
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    Interface,
    KeyKind,
    Scope,
    kind_of,
)
from cuepost.domain.attempt import Attempt, Outcome, Timings
from cuepost.domain.delivery import Delivery, Trigger
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.interfaces.media.app import media_routes
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.rest.operation import Operation
from tests.application.harness import BASE_URL, OPERATOR, Harness

NOW = "2026-01-02T03:04:05.678Z"
URL = "https://hooks.example.com/cue"
RULES = Rules(BASE_URL, EgressPolicy(), endpoint_limit=5, requests_per_minute=10_000)


@dataclass(frozen=True)
class Api:
    """A client with the keys of an account's owner, of the pipeline and of the operator."""

    harness: Harness
    client: httpx2.AsyncClient
    owner: str
    pipeline: str
    operator: str = ""

    async def call(
        self, method: str, path: str, body: Any = None, *, key: str | None = None, **more: Any
    ) -> httpx2.Response:
        """As the owner, unless another key is given; an empty one means none."""
        headers = dict(more.pop("headers", {}))
        if token := self.owner if key is None else key:
            headers["Authorization"] = f"Bearer {token}"
        if body is not None:
            more["json"] = body
        return await self.client.request(method, path, headers=headers, **more)

    async def done(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        answer = await self.call(method, path, body, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    async def stored(self) -> dict[str, Any]:
        """Every row of every table but the keys, which note when they were last used."""
        rows = await self.harness.dump()
        del rows["api_keys"]
        return rows

    async def report(self, *milestones: dict[str, Any]) -> Any:
        body = {"milestones": list(milestones)}
        return await self.done("POST", "/v1/milestones", body, key=self.pipeline)

    async def new_key(self, scopes: Iterable[Scope], account_id: UUID | None = None) -> str:
        chosen = frozenset(scopes)
        is_account = kind_of(chosen) is KeyKind.ACCOUNT
        account = account_id or self.harness.account.id if is_account else None
        made = await self.harness.do(
            self.harness.service.access.create_key, OPERATOR, account, name="test", scopes=chosen
        )
        return made.token

    async def scopes_of(self, key: str) -> frozenset[Scope]:
        authenticate = self.harness.service.authenticate
        return (await authenticate.caller(key, Interface.REST, None)).scopes

    def key_for(self, operation: Operation) -> str:
        kind = kind_of(frozenset({operation.scope}))
        return {
            KeyKind.ACCOUNT: self.owner,
            KeyKind.SERVICE: self.pipeline,
            KeyKind.OPERATOR: self.operator,
        }[kind]

    async def stranger(self, *, webhooks_enabled: bool = True) -> str:
        """A key of another account, with every scope."""
        caller = await self.harness.new_owner(webhooks_enabled=webhooks_enabled)
        return await self.new_key(ACCOUNT_SCOPES, caller.account_id)


async def opened(harness: Harness, rules: Rules = RULES) -> Api:
    harness = harness.reassembled(rules)
    app = create_app(
        harness.service,
        base_url=BASE_URL,
        health=HealthChecks(harness.store.check, lambda: "ok"),
        further_routes=media_routes(harness.service),
    )
    client = httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app, client=("192.0.2.7", 4711)), base_url=BASE_URL
    )
    api = Api(harness, client, "", "")
    return replace(
        api,
        owner=await api.new_key(ACCOUNT_SCOPES),
        pipeline=await api.new_key(SERVICE_SCOPES),
        operator=await api.new_key(OPERATOR_SCOPES),
    )


def problem(answer: httpx2.Response) -> tuple[int, str]:
    """Status and code of a problem document, whose form is checked as well."""
    found = answer.json()
    assert answer.headers["content-type"] == "application/problem+json"
    assert found["status"] == answer.status_code
    assert found["type"] == f"urn:cuepost:problem:{found['code']}"
    assert found["title"]
    assert found["detail"]
    assert found["requestId"] == answer.headers["x-request-id"]
    assert int(answer.headers["content-length"]) == len(answer.content)
    return answer.status_code, found["code"]


def faults(answer: httpx2.Response) -> list[tuple[str, str]]:
    """Fields and codes of a request that is not valid."""
    found = [(error["field"], error["code"]) for error in answer.json()["errors"]]
    code = found[0][1] if len(found) == 1 else "invalid_request"
    assert problem(answer) == (422, code)
    return found


def attempt_of(delivery: Delivery, **changed: Any) -> Attempt:
    values: dict[str, Any] = {
        "account_id": delivery.account_id,
        "delivery_id": delivery.id,
        "budget": 1,
        "number": 1,
        "trigger": Trigger.AUTOMATIC,
        "started_at": delivery.created_at,
        "duration_ms": 12.5,
        "timings": Timings(dns_ms=1.0, connect_ms=2.0, tls_ms=3.0, first_byte_ms=4.0),
        "signed_with": ("whsec_…zabc",),
        "request_headers": (("webhook-id", str(delivery.event_id)),),
        "response_status": 500,
        "response_headers": (("set-cookie", "a=1"), ("set-cookie", "b=2")),
        "response_body": b"out of order",
        "response_truncated": False,
        "outcome": Outcome.HTTP_ERROR,
        "url": URL,
    }
    return Attempt(**(values | changed))
