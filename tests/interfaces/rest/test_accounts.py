"""The operator's calls about accounts and their keys."""

import asyncio
from typing import Any

import pytest

from cuepost.domain.access import USUAL_SCOPES
from tests.application.harness import BASE_URL, EVERYTHING
from tests.interfaces.rest.client import NOW, URL, Api, faults, problem

ACCOUNTS = "/v1/accounts"


async def create(api: Api, external_id: str | None = "cust_1", **more: Any) -> Any:
    body = {"name": "Harbour Films", "externalId": external_id} | more
    return await api.done("POST", ACCOUNTS, body, key=api.operator)


async def listed(api: Api, **params: Any) -> list[str]:
    """The names on all pages."""
    names: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        more = {"cursor": cursor} if cursor else {}
        page = await api.done("GET", ACCOUNTS, key=api.operator, params=params | more)
        names += [each["name"] for each in page["data"]]
        cursor = page["nextCursor"]
    return names


async def test_an_account_is_created_with_the_reference_of_the_host(api: Api) -> None:
    body = {"name": "Harbour Films", "externalId": "cust_1", "webhooksAccess": "open"}
    answer = await api.call("POST", ACCOUNTS, body, key=api.operator)
    made = answer.json()
    assert answer.status_code == 201
    assert made == {
        "id": made["id"],
        "externalId": "cust_1",
        "name": "Harbour Films",
        "webhooksAccess": "open",
        "state": "live",
        "createdAt": made["createdAt"],
    }
    assert answer.headers["location"] == f"{BASE_URL}/v1/accounts/{made['id']}"
    for reference in (made["id"], "external:cust_1", "external%3Acust_1"):
        assert await api.done("GET", f"{ACCOUNTS}/{reference}", key=api.operator) == made


@pytest.mark.parametrize("body", [{"name": "a"}, {"name": "a", "externalId": None}])
async def test_an_account_needs_no_external_id_and_is_closed_at_first(api: Api, body: Any) -> None:
    for _ in range(2):
        made = await api.done("POST", ACCOUNTS, body, key=api.operator)
        assert (made["externalId"], made["webhooksAccess"]) == (None, "closed")


async def test_an_external_id_that_is_taken_is_a_conflict(api: Api) -> None:
    made = await create(api)
    answer = await api.call(
        "POST", ACCOUNTS, {"name": "b", "externalId": "cust_1"}, key=api.operator
    )
    assert problem(answer) == (409, "external_id_taken")
    assert answer.json()["accountId"] == made["id"]


async def test_a_repetition_with_the_same_idempotency_key_gets_the_first_answer(api: Api) -> None:
    body, headers = {"name": "a", "externalId": "cust_1"}, {"Idempotency-Key": "sign-up-1"}
    first, second = [
        await api.call("POST", ACCOUNTS, body, key=api.operator, headers=headers) for _ in range(2)
    ]
    assert (first.status_code, first.content) == (second.status_code, second.content)
    assert second.headers["idempotency-replayed"] == "true"
    other = await api.call(
        "POST", ACCOUNTS, body | {"name": "b"}, key=api.operator, headers=headers
    )
    assert problem(other) == (422, "idempotency_key_reused")


async def test_of_many_sign_ups_at_once_one_makes_the_account(api: Api) -> None:
    body = {"name": "a", "externalId": "cust_1"}
    answers = await asyncio.gather(
        *(api.call("POST", ACCOUNTS, body, key=api.operator) for _ in range(5))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409, 409]
    [made] = [answer.json()["id"] for answer in answers if answer.is_success]
    assert {a.json()["accountId"] for a in answers if not a.is_success} == {made}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("name", "missing_field")),
        ({"name": ""}, ("name", "too_short")),
        ({"name": "a\u0000"}, ("name", "invalid_characters")),
        ({"name": "a", "externalId": "a/b"}, ("externalId", "invalid_external_id")),
        ({"name": "a", "externalId": ""}, ("externalId", "too_short")),
        ({"name": "a", "externalId": "x" * 201}, ("externalId", "too_long")),
        ({"name": "a", "webhooksAccess": "ajar"}, ("webhooksAccess", "invalid_value")),
        ({"name": "a", "id": 1}, ("id", "unknown_field")),
    ],
)
async def test_what_is_not_valid_is_named(api: Api, body: Any, fault: tuple[str, str]) -> None:
    assert faults(await api.call("POST", ACCOUNTS, body, key=api.operator)) == [fault]


async def test_an_account_is_changed_by_either_id(api: Api) -> None:
    made = await create(api)
    path = f"{ACCOUNTS}/external:cust_1"
    changed = await api.done("PATCH", path, {"name": "Film"}, key=api.operator)
    assert changed == made | {"name": "Film"}
    changed = await api.done("PATCH", path, {"externalId": "cust_2"}, key=api.operator)
    assert changed["externalId"] == "cust_2"
    assert problem(await api.call("GET", path, key=api.operator)) == (404, "not_found")
    path = f"{ACCOUNTS}/{made['id']}"
    assert (await api.done("PATCH", path, {}, key=api.operator)) == changed
    bare = await api.done("PATCH", path, {"externalId": None}, key=api.operator)
    assert bare == made | {"name": "Film", "externalId": None}


async def test_access_opens_and_closes(api: Api) -> None:
    await create(api)
    path = f"{ACCOUNTS}/external:cust_1"
    for call, access in (("open-access", "open"), ("close-access", "closed")):
        for _ in range(2):
            done = await api.done("POST", f"{path}/{call}", key=api.operator)
            assert done["webhooksAccess"] == access


async def test_a_customer_is_provisioned_and_works_with_the_key(api: Api) -> None:
    made = await create(api, webhooksAccess="open")
    path = f"{ACCOUNTS}/external:cust_1/keys"
    answer = await api.call("POST", path, {"name": "Server"}, key=api.operator)
    key = answer.json()
    assert (answer.status_code, key["accountId"]) == (201, made["id"])
    assert key["scopes"] == sorted(USUAL_SCOPES)
    await api.done("POST", "/v1/webhooks", {"url": URL}, key=key["token"])
    assert (await api.done("GET", "/v1/webhooks"))["data"] == []
    [seen] = (await api.done("GET", path, key=api.operator))["data"]
    assert seen["lastUsedAt"]
    assert seen == {name: key[name] for name in seen} | {"lastUsedAt": seen["lastUsedAt"]}
    assert "token" not in seen
    await api.done("DELETE", f"{path}/{key['id']}", key=api.operator)
    [seen] = (await api.done("GET", path, key=api.operator))["data"]
    assert seen["revokedAt"]
    api.harness.clock.advance(2)
    answer = await api.call("GET", "/v1/webhooks", key=key["token"])
    assert problem(answer) == (401, "unauthenticated")


async def test_a_key_of_another_account_is_not_revoked_by_this_path(api: Api) -> None:
    await create(api)
    await create(api, "cust_2")
    body = {"name": "Server"}
    key = await api.done("POST", f"{ACCOUNTS}/external:cust_1/keys", body, key=api.operator)
    foreign = f"{ACCOUNTS}/external:cust_2/keys/{key['id']}"
    assert problem(await api.call("DELETE", foreign, key=api.operator)) == (404, "not_found")
    assert (await api.done("GET", f"{ACCOUNTS}/external:cust_2/keys", key=api.operator)) == {
        "data": [],
        "nextCursor": None,
    }


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"scopes": ["accounts:manage"]}, ("scopes", "scope_not_possible")),
        ({"scopes": ["milestones:report"]}, ("scopes", "scope_not_possible")),
        ({"scopes": ["everything"]}, ("scopes", "scope_not_possible")),
        ({"scopes": []}, ("scopes", "scope_not_possible")),
        ({"expiresAt": NOW}, ("expiresAt", "expiry_in_the_past")),
    ],
)
async def test_a_key_that_cannot_be_is_refused(api: Api, body: Any, fault: tuple[str, str]) -> None:
    await create(api)
    api.harness.clock.advance(60)
    path = f"{ACCOUNTS}/external:cust_1/keys"
    answer = await api.call("POST", path, {"name": "Server"} | body, key=api.operator)
    assert faults(answer) == [fault]


async def test_keys_come_in_pages(api: Api) -> None:
    await create(api)
    path = f"{ACCOUNTS}/external:cust_1/keys"
    for number in range(3):
        await api.done("POST", path, {"name": f"key {number}"}, key=api.operator)
    page = await api.done("GET", path, key=api.operator, params={"limit": 2})
    rest = await api.done(
        "GET", path, key=api.operator, params={"limit": 2, "cursor": page["nextCursor"]}
    )
    names = [each["name"] for each in page["data"] + rest["data"]]
    assert (names, rest["nextCursor"]) == (["key 2", "key 1", "key 0"], None)


async def test_accounts_are_listed_newest_first_and_searched_in_order(api: Api) -> None:
    for number, name in enumerate(["Harbour", "harbour b", "Hafen", "HARBOUR A", "Straße", "Harz"]):
        await create(api, f"cust_{number}", name=name)
    everything = ["Harz", "Straße", "HARBOUR A", "Hafen", "harbour b", "Harbour", "Test account"]
    assert await listed(api, limit=2) == everything
    found = ["Harbour", "HARBOUR A", "harbour b"]
    for limit in (1, 2, 3, 100):
        assert await listed(api, namePrefix="harBOUR", limit=limit) == found
    assert await listed(api, namePrefix="STRASSE") == ["Straße"]
    by_id = ["Harbour", "harbour b", "Hafen", "HARBOUR A", "Straße", "Harz"]
    for limit in (1, 4, 100):
        assert await listed(api, externalIdPrefix="cust_", limit=limit) == by_id
    assert await listed(api, externalIdPrefix="CUST_") == []


async def test_a_search_goes_on_where_it_was_though_the_account_has_another_name(
    api: Api,
) -> None:
    made = [await create(api, f"cust_{number}", name=f"a {number}") for number in range(4)]
    params = {"namePrefix": "a", "limit": 2}
    page = await api.done("GET", ACCOUNTS, key=api.operator, params=params)
    assert [each["id"] for each in page["data"]] == [each["id"] for each in made[:2]]
    await api.done("PATCH", f"{ACCOUNTS}/{made[1]['id']}", {"name": "z"}, key=api.operator)
    rest = await api.done(
        "GET", ACCOUNTS, key=api.operator, params=params | {"cursor": page["nextCursor"]}
    )
    assert [each["id"] for each in rest["data"]] == [each["id"] for each in made[2:]]


@pytest.mark.parametrize(
    ("params", "fault"),
    [
        ({"namePrefix": "a", "externalIdPrefix": "b"}, ("externalIdPrefix", "two_searches")),
        ({"namePrefix": ""}, ("namePrefix", "too_short")),
        ({"externalIdPrefix": "a/b"}, ("externalIdPrefix", "invalid_external_id")),
        ({"cursor": "nonsense"}, ("cursor", "invalid_cursor")),
        ({"cursor": "é", "namePrefix": "a"}, ("cursor", "invalid_cursor")),
        ({"cursor": "A", "namePrefix": "a"}, ("cursor", "invalid_cursor")),
        ({"cursor": "A" * 24, "namePrefix": "a"}, ("cursor", "invalid_cursor")),
        ({"cursor": "x" * 1501, "namePrefix": "a"}, ("cursor", "too_long")),
        ({"limit": 101}, ("limit", "too_large")),
    ],
)
async def test_a_query_that_makes_no_sense_is_refused(
    api: Api, params: Any, fault: tuple[str, str]
) -> None:
    assert faults(await api.call("GET", ACCOUNTS, key=api.operator, params=params)) == [fault]


async def test_deleting_starts_an_erasure_that_can_be_watched(api: Api) -> None:
    made = await create(api, webhooksAccess="open")
    path = f"{ACCOUNTS}/external:cust_1"
    key = await api.done("POST", f"{path}/keys", {"name": "Server"}, key=api.operator)
    erasing = made | {"webhooksAccess": "closed", "state": "erasing"}
    for _ in range(2):
        answer = await api.call("DELETE", path, key=api.operator)
        assert (answer.status_code, answer.json()) == (202, erasing)
        assert answer.headers["location"] == f"{BASE_URL}/v1/accounts/{made['id']}"
    assert await api.done("GET", path, key=api.operator) == erasing
    answer = await api.call("GET", "/v1/webhooks", key=key["token"])
    assert problem(answer) == (401, "unauthenticated")
    for method, call, body in (
        ("PATCH", "", {"name": "Film"}),
        ("POST", "/open-access", None),
        ("POST", "/close-access", None),
        ("POST", "/keys", {"name": "Server"}),
    ):
        refused = await api.call(method, f"{path}{call}", body, key=api.operator)
        assert problem(refused) == (409, "account_erasing")
    while not await api.harness.service.maintenance.erasing.step(api.harness.account.id):
        pass
    assert await api.done("GET", path, key=api.operator) == erasing
    erase = api.harness.service.maintenance.erasing
    account = await api.harness.see(lambda t: t.accounts.by_external_id("cust_1"))
    assert account is not None
    while not await erase.step(account.id):
        pass
    for method in ("GET", "DELETE"):
        assert problem(await api.call(method, path, key=api.operator)) == (404, "not_found")
    assert (await create(api))["id"] != made["id"]


async def test_the_audit_trail_names_the_operator_key(api: Api) -> None:
    made = await create(api)
    await api.done("POST", f"{ACCOUNTS}/external:cust_1/open-access", key=api.operator)
    account = await api.harness.see(lambda t: t.accounts.by_external_id("cust_1"))
    assert account is not None
    trail = await api.harness.see(lambda t: t.audit.page(account.id, EVERYTHING))
    [operator] = {each.actor for each in trail}
    [key] = [
        each
        for each in await api.harness.see(lambda t: t.keys.all(None))
        if f"key:{each.id}" == operator
    ]
    assert [(each.action, each.interface, each.address, each.subject) for each in trail] == [
        ("account.access_opened", "rest", "192.0.2.7", made["id"]),
        ("account.created", "rest", "192.0.2.7", made["id"]),
    ]
    assert "accounts:manage" in key.scopes
