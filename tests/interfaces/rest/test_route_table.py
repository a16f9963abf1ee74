"""Generated from the route table: every call, whoever must not get through it."""

import re
from dataclasses import dataclass
from typing import Any

import httpx2
import pytest

from cuepost.domain.access import ACCOUNT_SCOPES, SERVICE_SCOPES, Scope
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.table import OPERATIONS
from tests.interfaces.rest.client import NOW, Api, problem

WITH_IDS = [operation for operation in OPERATIONS if "{" in operation.path]
LISTS = [
    operation
    for operation in OPERATIONS
    if operation.method == "GET" and operation not in WITH_IDS and operation.query.__struct_fields__
]
IMPLIED = {Scope.WEBHOOKS_READ: {Scope.WEBHOOKS_MANAGE}}


def named(operation: Operation) -> str:
    return operation.name


def test_only_lists_of_history_may_come_from_a_replica() -> None:
    lagging = {operation.name for operation in OPERATIONS if operation.may_lag}
    assert lagging == {"listWebhookDeliveries", "listDeliveries", "listEvents", "listAudit"}


each_call = pytest.mark.parametrize("operation", OPERATIONS, ids=named)


@dataclass(frozen=True)
class Things:
    """One of everything, in the owner's account."""

    ids: dict[str, str]

    def path(self, operation: Operation) -> str:
        return re.sub(r"{(\w+)}", lambda found: self.ids[found[1]], operation.path)


async def things_of(api: Api) -> Things:
    endpoint = (await api.harness.endpoint()).view.endpoint
    listener = await api.done("POST", "/v1/listeners", {"name": "laptop"})
    delivery = await api.harness.complete()
    await api.harness.end(delivery, DeliveryStatus.FAILED)
    await api.done("GET", f"/v1/listeners/{listener['id']}/events")
    job = await api.done("POST", f"/v1/webhooks/{endpoint.id}/retries", {"since": NOW})
    return Things(
        {
            "webhookId": str(endpoint.id),
            "deliveryId": str(delivery.id),
            "eventId": str(delivery.event_id),
            "projectId": str(delivery.project_id),
            "retryId": job["id"],
            "listenerId": listener["id"],
        }
    )


def body_of(operation: Operation) -> Any:
    return example_of(operation.body) if operation.takes_body else None


async def ask(api: Api, operation: Operation, path: str, key: str) -> tuple[int, str]:
    return problem(await api.call(operation.method, path, body_of(operation), key=key))


def key_scopes(*, without: Scope) -> frozenset[Scope]:
    """Every scope that the same kind of key can have, but this one and those that include it."""
    possible = SERVICE_SCOPES if without not in SERVICE_SCOPES else ACCOUNT_SCOPES
    same_kind = ACCOUNT_SCOPES if without in ACCOUNT_SCOPES else possible
    return same_kind - {without} - IMPLIED.get(without, set())


@each_call
async def test_no_one_gets_through_without_a_key(sqlite_api: Api, operation: Operation) -> None:
    answer = await sqlite_api.call(operation.method, operation.path, key="")
    assert problem(answer) == (401, "unauthenticated")
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "ratelimit-limit" not in answer.headers


@each_call
async def test_no_one_gets_through_without_the_scope(api: Api, operation: Operation) -> None:
    key = await api.new_key(key_scopes(without=operation.scope))
    before = await api.stored()
    for body in (None, body_of(operation)):
        answer = await api.call(operation.method, operation.path, body, key=key)
        assert problem(answer) == (403, "missing_scope")
        assert answer.json()["scope"] == operation.scope
    assert await api.stored() == before


@pytest.mark.parametrize("operation", WITH_IDS, ids=named)
async def test_a_thing_of_another_account_is_as_one_that_does_not_exist(
    api: Api, operation: Operation
) -> None:
    things, stranger = await things_of(api), await api.stranger()
    before = await api.stored()

    async def asked(path: str) -> httpx2.Response:
        same_id = {"X-Request-Id": "one"}
        return await api.call(
            operation.method, path, body_of(operation), key=stranger, headers=same_id
        )

    foreign = await asked(things.path(operation))
    missing = re.sub(r"{\w+}", "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90", operation.path)
    unknown = await asked(missing)
    nonsense = re.sub(r"{\w+}", "nonsense", operation.path)
    no_id = await asked(nonsense)
    assert problem(foreign) == (404, "not_found")
    assert foreign.content == unknown.content == no_id.content
    assert await api.stored() == before


@pytest.mark.parametrize("operation", WITH_IDS, ids=named)
async def test_the_owner_reaches_the_same_thing(api: Api, operation: Operation) -> None:
    """Or else the test above would prove nothing."""
    things = await things_of(api)
    answer = await api.call(operation.method, things.path(operation), body_of(operation))
    assert answer.status_code in {operation.status, 409}


@pytest.mark.parametrize("operation", LISTS, ids=named)
async def test_lists_show_nothing_of_another_account(api: Api, operation: Operation) -> None:
    things, stranger = await things_of(api), await api.stranger()
    mine = await api.call(operation.method, operation.path)
    assert mine.json()["data"]
    theirs = await api.call(operation.method, operation.path, key=stranger)
    assert theirs.status_code == 200
    assert not [found for found in things.ids.values() if found in theirs.text]


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.webhooks], ids=named)
async def test_an_account_without_access_is_told_so(api: Api, operation: Operation) -> None:
    closed = await api.stranger(webhooks_enabled=False)
    for body in (None, body_of(operation)):
        answer = await api.call(operation.method, operation.path, body, key=closed)
        assert problem(answer) == (403, "webhooks_not_enabled")


@each_call
async def test_other_methods_are_refused_and_the_right_ones_named(
    sqlite_api: Api, operation: Operation
) -> None:
    methods = {each.method for each in OPERATIONS if each.path == operation.path}
    methods |= {"HEAD"} if "GET" in methods else set()
    for method in {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"} - methods:
        answer = await sqlite_api.call(method, operation.path)
        assert answer.status_code == 405
        assert set(answer.headers["allow"].split(", ")) == methods
        if method != "HEAD":
            assert problem(answer) == (405, "method_not_allowed")


@pytest.mark.parametrize("operation", [o for o in OPERATIONS if o.method == "GET"], ids=named)
async def test_head_answers_like_get_without_a_body(api: Api, operation: Operation) -> None:
    path = (await things_of(api)).path(operation)
    head, get = await api.call("HEAD", path), await api.call("GET", path)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for header in ("content-type", "content-length", "cache-control"):
        assert head.headers[header] == get.headers[header]


@each_call
async def test_unknown_query_parameters_are_refused_by_name(api: Api, operation: Operation) -> None:
    path = (await things_of(api)).path(operation)
    key = api.pipeline if operation.scope in SERVICE_SCOPES else api.owner
    answer = await api.call(
        operation.method, path, body_of(operation), key=key, params={"colour": "red"}
    )
    assert problem(answer) == (422, "unknown_field")
    assert answer.json()["errors"] == [
        {"field": "colour", "code": "unknown_field", "message": "This field is not known."}
    ]


def test_every_call_has_a_name_of_its_own() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    addresses = [(operation.method, operation.path) for operation in OPERATIONS]
    assert len(set(addresses)) == len(addresses)
