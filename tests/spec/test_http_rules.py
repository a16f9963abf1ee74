"""The rules of the specification that show on the wire, as someone with a key sees them."""

import base64
import json
import re
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest
from starlette.routing import Route

from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.rest.table import OPERATIONS
from tests.application.harness import BASE_URL, OPERATOR, Harness

URL = "https://hooks.example.com/cue"
# What is read without a key and is no call of the API.
OPEN_PAGES = {
    *("/healthz", "/readyz", "/metrics"),
    *("/openapi.json", "/docs", "/docs.css"),
    *("/llms.txt", "/cuepost.http", "/schemas", "/schemas/", "/schemas/{name}.json"),
}


@dataclass(frozen=True)
class Holder:
    """Someone who holds one API key, or none."""

    api: httpx2.AsyncClient
    token: str | None

    async def ask(self, method: str, path: str, **more: Any) -> httpx2.Response:
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return await self.api.request(
            method, path, headers=headers | more.pop("headers", {}), **more
        )

    async def done(self, method: str, path: str, **more: Any) -> Any:
        answer = await self.ask(method, path, **more)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None


async def holder(harness: Harness, api: httpx2.AsyncClient, *scopes: Scope) -> Holder:
    service = Scope.MILESTONES_REPORT in scopes
    made = await harness.do(
        harness.service.access.create_key,
        OPERATOR,
        None if service else harness.account.id,
        name="test",
        scopes=scopes,
    )
    return Holder(api, made.token)


def problem(answer: httpx2.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    return answer.status_code, answer.json()["code"]


async def test_an_endpoint_is_created_by_post_and_shows_its_secret_there_alone(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    created = await owner.ask(
        "POST", "/v1/webhooks", json={"url": URL, "events": ["project.ready"]}
    )
    assert created.status_code == 201
    made = created.json()
    assert (made["url"], made["events"], made["enabled"]) == (URL, ["project.ready"], True)
    prefix, secret = made["secret"][:6], made["secret"][6:]
    assert prefix == "whsec_"
    assert len(base64.b64decode(secret, validate=True)) == 32
    for path in ("/v1/webhooks", f"/v1/webhooks/{made['id']}", "/v1/audit"):
        answer = await owner.ask("GET", path)
        assert answer.is_success
        assert secret not in answer.text


async def test_a_url_is_required_and_events_are_not(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    missing = await owner.ask("POST", "/v1/webhooks", json={"events": []})
    assert missing.status_code == 422
    assert [error["field"] for error in missing.json()["errors"]] == ["url"]
    for body in ({"url": URL}, {"url": URL, "events": []}):
        made = await owner.done("POST", "/v1/webhooks", json=body)
        assert made["events"] == ["project.completed", "project.failed"]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://hooks.example.com/", "url_scheme_not_https"),
        ("https://hooks.example.com:444/", "url_port_not_allowed"),
        ("https://localhost/", "url_host_not_public"),
        ("https://192.168.0.1/", "url_address_not_public"),
        ("https://[::1]/", "url_address_not_public"),
    ],
)
async def test_a_receiver_that_is_not_public_https_on_443_is_refused(
    harness: Harness, api: httpx2.AsyncClient, url: str, code: str
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    refused = await owner.ask("POST", "/v1/webhooks", json={"url": url})
    assert refused.status_code == 422
    assert [(e["field"], e["code"]) for e in refused.json()["errors"]] == [("url", code)]


async def test_the_body_is_announced_as_json(harness: Harness, api: httpx2.AsyncClient) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    body, kind = json.dumps({"url": URL}), {"Content-Type": "text/plain"}
    refused = await owner.ask("POST", "/v1/webhooks", content=body, headers=kind)
    assert problem(refused) == (415, "unsupported_media_type")
    assert (await owner.done("GET", "/v1/webhooks"))["data"] == []


async def test_creating_an_endpoint_needs_the_managing_scope(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    others = await holder(harness, api, *(ACCOUNT_SCOPES - {Scope.WEBHOOKS_MANAGE}))
    refused = await others.ask("POST", "/v1/webhooks", json={"url": URL})
    assert problem(refused) == (403, "missing_scope")
    manager = await holder(harness, api, Scope.WEBHOOKS_MANAGE)
    await manager.done("POST", "/v1/webhooks", json={"url": URL})


async def test_an_account_that_was_not_opened_is_told_so(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    await harness.do(harness.service.access.set_webhooks, OPERATOR, harness.account.id, False)
    refused = await owner.ask("POST", "/v1/webhooks", json={"url": URL})
    assert problem(refused) == (403, "webhooks_not_enabled")


@pytest.mark.parametrize("authorization", [None, "Bearer", "Basic dTpw", "Bearer cpk_nonsense"])
async def test_every_call_wants_a_bearer_key(
    api: httpx2.AsyncClient, authorization: str | None
) -> None:
    headers = {} if authorization is None else {"Authorization": authorization}
    for operation in OPERATIONS:
        path = operation.path.replace("{", "").replace("}", "")
        answer = await api.request(operation.method, path, headers=headers)
        assert problem(answer) == (401, "unauthenticated"), operation.path


async def test_a_signing_secret_is_no_api_key(harness: Harness, api: httpx2.AsyncClient) -> None:
    secret = (await harness.endpoint()).secret.reveal()
    answer = await Holder(api, secret).ask("GET", "/v1/webhooks")
    assert problem(answer) == (401, "unauthenticated")


async def test_every_path_but_open_pages_carries_the_version(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    app = create_app(harness.service, base_url=BASE_URL, health=HealthChecks(harness.store.check))
    routed = {route.path for route in app.routes if isinstance(route, Route)}
    assert len(routed) == len(app.routes)
    assert routed - {each.path for each in OPERATIONS} == OPEN_PAGES
    document = (await api.get("/openapi.json")).json()
    assert set(document["paths"]) == routed - OPEN_PAGES
    assert [path for path in document["paths"] if not path.startswith("/v1/")] == []
    assert [server["url"] for server in document["servers"]] == [BASE_URL]


@pytest.mark.parametrize("version", ["", "/v0", "/v2", "/V1", "/v1/v1"])
async def test_without_the_right_version_there_is_nothing(
    harness: Harness, api: httpx2.AsyncClient, version: str
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    someone = str(harness.account.id)
    for operation in OPERATIONS:
        path = re.sub(r"{\w+}", someone, operation.path.removeprefix("/v1"))
        answer = await owner.ask(operation.method, f"{version}{path}")
        assert problem(answer) == (404, "not_found"), (operation.method, path)


async def test_a_project_of_the_rest_api_is_covered_and_can_be_polled(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    pipeline = await holder(harness, api, Scope.MILESTONES_REPORT)
    await owner.done("POST", "/v1/webhooks", json={"url": URL})
    project = await owner.done("POST", "/v1/projects", json={"name": "Trailer"})
    assert (project["origin"], project["status"]) == ("api", "queued")
    results = []
    for status in ("processing", "exporting", "completed"):
        report = {"reportId": status, "projectId": project["id"], "status": status}
        body = {"milestones": [report]}
        results += (await pipeline.done("POST", "/v1/milestones", json=body))["results"]
        seen = await owner.done("GET", f"/v1/projects/{project['id']}")
        assert seen["status"] == status
    assert [result["notified"] for result in results] == [False, False, True]
    [delivery] = (await owner.done("GET", "/v1/deliveries"))["data"]
    assert (delivery["eventType"], delivery["projectId"]) == ("project.completed", project["id"])


async def test_the_result_address_of_an_event_is_read_with_a_read_scoped_key(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    await harness.endpoint()
    project = await harness.project()
    await harness.complete(project)
    [event] = await harness.events()
    address = json.loads(event.body)["data"]["resultUrl"]
    assert address == f"{BASE_URL}/v1/projects/{project.id}/result"
    reader = await holder(harness, api, Scope.PROJECTS_READ)
    result = await reader.done("GET", address)
    assert (result["projectId"], result["status"]) == (str(project.id), "completed")
    assert problem(await Holder(api, None).ask("GET", address)) == (401, "unauthenticated")
    others = await holder(harness, api, *(ACCOUNT_SCOPES - {Scope.PROJECTS_READ}))
    assert problem(await others.ask("GET", address)) == (403, "missing_scope")


async def test_every_settings_action_is_a_call_too(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    made = await owner.done("POST", "/v1/webhooks", json={"url": URL})
    one = f"/v1/webhooks/{made['id']}"
    listed = await owner.done("GET", "/v1/webhooks")
    assert [each["id"] for each in listed["data"]] == [made["id"]]
    assert (await owner.done("PATCH", one, json={"description": "CI"}))["description"] == "CI"
    rotated = await owner.done("POST", f"{one}/rotate-secret")
    assert rotated["secret"] != made["secret"]
    delivery = await owner.done("POST", f"{one}/test")
    assert (delivery["eventType"], delivery["status"]) == ("webhook.test", "pending")
    [ended] = await harness.deliveries()
    await harness.end(ended, DeliveryStatus.FAILED)
    again = await owner.done("POST", f"{one}/deliveries/{delivery['id']}/retry")
    assert (again["eventId"], again["budget"]) == (delivery["eventId"], 2)
    detail = await owner.done("GET", f"{one}/deliveries/{delivery['id']}")
    assert detail["event"]["id"] == delivery["eventId"]
    assert not (await owner.done("PATCH", one, json={"enabled": False}))["enabled"]
    await owner.done("DELETE", one)
    assert problem(await owner.ask("GET", one)) == (404, "not_found")


async def test_a_second_rotation_is_blocked_while_the_overlap_runs(
    harness: Harness, api: httpx2.AsyncClient
) -> None:
    owner = await holder(harness, api, *ACCOUNT_SCOPES)
    made = await owner.done("POST", "/v1/webhooks", json={"url": URL})
    rotate = f"/v1/webhooks/{made['id']}/rotate-secret"
    rotated = await owner.done("POST", rotate)
    assert rotated["previousSecretExpiresAt"] == "2026-01-03T03:04:05.678Z"
    refused = await owner.ask("POST", rotate)
    assert problem(refused) == (409, "rotation_overlap_active")
    assert refused.json()["availableAt"] == "2026-01-03T03:04:05.678Z"
