"""Generated from the route table: every call, by each caller that it must refuse."""

import re
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx2
import pytest

from cuepost.application.portal import WantedLink
from cuepost.domain.access import (
    ACCOUNT_SCOPES,
    OPERATOR_SCOPES,
    SERVICE_SCOPES,
    Role,
    Scope,
    key_id_in,
    kind_of,
)
from cuepost.domain.delivery import DeliveryStatus
from cuepost.interfaces.rest.openapi.examples import example_of
from cuepost.interfaces.rest.operation import Operation
from cuepost.interfaces.rest.table import OPERATIONS
from tests.application.harness import OPERATOR
from tests.interfaces.rest.client import NOW, Api, problem

OF_OPERATOR = [operation for operation in OPERATIONS if operation.scope in OPERATOR_SCOPES]
WITH_IDS = [operation for operation in OPERATIONS if "{" in operation.path]
LISTS = [
    operation
    for operation in OPERATIONS
    if operation.method == "GET"
    and operation not in (*WITH_IDS, *OF_OPERATOR)
    and operation.query.__struct_fields__
]
IMPLIED = {
    Scope.WEBHOOKS_READ: {Scope.WEBHOOKS_MANAGE},
    Scope.ACCOUNTS_READ: {Scope.ACCOUNTS_MANAGE},
    Scope.MEMBERS_READ: {Scope.MEMBERS_MANAGE},
}


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
    invited = await api.done("POST", "/v1/invitations", {"role": "viewer"})
    link = await api.harness.do(
        api.harness.service.sign_in.make_link, OPERATOR, api.harness.account.id
    )
    assert link.url
    [member] = (await api.call("GET", "/v1/members")).json()["data"]
    return Things(
        {
            "memberId": member["id"],
            "invitationId": invited["id"],
            "webhookId": str(endpoint.id),
            "deliveryId": str(delivery.id),
            "eventId": str(delivery.event_id),
            "projectId": str(delivery.project_id),
            "retryId": job["id"],
            "listenerId": listener["id"],
            "accountId": str(api.harness.account.id),
            "portalLinkId": await portal_link_of(api, member["id"]),
            "keyId": str(key_id_in(await api.new_key(ACCOUNT_SCOPES))),
        }
    )


async def portal_link_of(api: Api, member_id: str) -> str:
    made = await api.harness.do(
        api.harness.service.portal.create,
        OPERATOR,
        api.harness.account.id,
        WantedLink(UUID(member_id)),
    )
    return str(made.link.id)


def body_of(operation: Operation) -> Any:
    return example_of(operation.body) if operation.takes_body else None


async def ask(api: Api, operation: Operation, path: str, key: str) -> tuple[int, str]:
    return problem(await api.call(operation.method, path, body_of(operation), key=key))


def key_scopes(*, without: Scope) -> frozenset[Scope]:
    """Every scope that the same kind of key can have, but this one and those that include it."""
    possible = SERVICE_SCOPES if without not in SERVICE_SCOPES else ACCOUNT_SCOPES
    same_kind = ACCOUNT_SCOPES if without in ACCOUNT_SCOPES else possible
    if without in OPERATOR_SCOPES:
        same_kind = OPERATOR_SCOPES
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


@pytest.mark.parametrize(
    "operation", [each for each in WITH_IDS if each not in OF_OPERATOR], ids=named
)
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
    path, key = things.path(operation), api.key_for(operation)
    answer = await api.call(operation.method, path, body_of(operation), key=key)
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
    key = api.key_for(operation)
    head, get = await api.call("HEAD", path, key=key), await api.call("GET", path, key=key)
    assert (head.status_code, head.content) == (get.status_code, b"")
    for header in ("content-type", "content-length", "cache-control"):
        assert head.headers[header] == get.headers[header]


@each_call
async def test_unknown_query_parameters_are_refused_by_name(api: Api, operation: Operation) -> None:
    path = (await things_of(api)).path(operation)
    key = api.key_for(operation)
    answer = await api.call(
        operation.method, path, body_of(operation), key=key, params={"colour": "red"}
    )
    assert problem(answer) == (422, "unknown_field")
    assert answer.json()["errors"] == [
        {"field": "colour", "code": "unknown_field", "message": "This field is not known."}
    ]


async def test_a_key_with_the_scopes_of_a_viewer_changes_nothing(sqlite_api: Api) -> None:
    """Every call of the table that is not a GET, with ids of things that exist."""
    things, key = await things_of(sqlite_api), await sqlite_api.new_key(Role.VIEWER.scopes)
    before = await sqlite_api.stored()
    for operation in OPERATIONS:
        if operation.method == "GET":
            continue
        answer = await sqlite_api.call(
            operation.method, things.path(operation), body_of(operation), key=key
        )
        assert answer.status_code == 403, operation.name
        assert answer.json()["code"] in {"missing_scope", "wrong_kind_of_key"}
    assert await sqlite_api.stored() == before


OF_ACCOUNTS = [o for o in OF_OPERATOR if o.path.count("{") > 1]


@pytest.mark.parametrize("operation", OF_ACCOUNTS, ids=named)
async def test_a_thing_of_another_account_is_not_there_for_the_operator(
    api: Api, operation: Operation
) -> None:
    """Members, keys and portal links are named together with the account that they are in."""
    things, other = await things_of(api), await api.harness.new_owner()
    before = await api.stored()
    path = Things(things.ids | {"accountId": str(other.account_id)}).path(operation)
    answer = await api.call(operation.method, path, body_of(operation), key=api.operator)
    assert problem(answer) == (404, "not_found")
    assert await api.stored() == before


def test_every_call_has_a_name_of_its_own() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(set(names)) == len(names)
    addresses = [(operation.method, operation.path) for operation in OPERATIONS]
    assert len(set(addresses)) == len(addresses)


async def keys_of_other_kinds(api: Api, operation: Operation) -> list[str]:
    """Of those of which one is the operator's; a key of another account is among them."""
    own = kind_of(frozenset({operation.scope}))
    keys = {
        *(api.owner, await api.stranger(), api.pipeline, api.operator),
        *[await api.new_key({scope}) for scope in OPERATOR_SCOPES],
    }
    is_operators = operation in OF_OPERATOR
    scopes = {key: (await api.scopes_of(key)) for key in keys}
    return [
        key
        for key, held in scopes.items()
        if kind_of(held) is not own and (is_operators or held <= OPERATOR_SCOPES)
    ]


@each_call
async def test_operator_keys_and_other_keys_have_no_call_in_common(
    api: Api, operation: Operation
) -> None:
    """A new call is tried by itself, since it is in the table; with ids of things that exist."""
    things = await things_of(api)
    keys = await keys_of_other_kinds(api, operation)
    assert len(keys) == (3 if operation in OF_OPERATOR else 4)
    before = await api.stored()
    for key in keys:
        for path in (things.path(operation), operation.path):
            answer = await api.call(operation.method, path, body_of(operation), key=key)
            assert problem(answer) == (403, "wrong_kind_of_key")
            assert not [found for found in things.ids.values() if found in answer.text]
    assert await api.stored() == before


@pytest.mark.parametrize("operation", [o for o in OF_OPERATOR if o in WITH_IDS], ids=named)
async def test_an_account_that_does_not_exist_answers_the_operator_alike(
    api: Api, operation: Operation
) -> None:
    things = await things_of(api)
    before = await api.stored()
    answers = []
    for reference in (
        "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90",
        "external:missing",
        "external:",
        "nonsense",
    ):
        path = Things(things.ids | {"accountId": reference}).path(operation)
        answers.append(
            await api.call(
                operation.method,
                path,
                body_of(operation),
                key=api.operator,
                headers={"X-Request-Id": "one"},
            )
        )
    assert {problem(answer) for answer in answers} == {(404, "not_found")}
    assert len({answer.content for answer in answers}) == 1
    assert await api.stored() == before
