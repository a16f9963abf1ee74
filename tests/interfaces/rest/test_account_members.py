"""Members of an account, as a host product manages them with an operator key."""

import asyncio
from typing import Any

import pytest

from tests.application.harness import BASE_URL
from tests.interfaces.rest.client import Api, faults, problem

ACCOUNT = "/v1/accounts/external:cust_1"
MEMBERS = f"{ACCOUNT}/members"


@pytest.fixture
async def host(api: Api) -> Api:
    body = {"name": "Harbour Films", "externalId": "cust_1", "webhooksAccess": "open"}
    await api.done("POST", "/v1/accounts", body, key=api.operator)
    return api


async def ask(api: Api, method: str, path: str, body: Any = None, **more: Any) -> Any:
    return await api.done(method, path, body, key=api.operator, **more)


async def refused(api: Api, method: str, path: str, body: Any = None) -> tuple[int, str]:
    return problem(await api.call(method, path, body, key=api.operator))


async def add(api: Api, role: str = "developer", **more: Any) -> Any:
    return await ask(api, "POST", MEMBERS, {"role": role} | more)


async def test_a_member_is_added_with_the_reference_of_the_host(host: Api) -> None:
    body = {"role": "developer", "externalId": "user_7", "email": "Ada@example.com"}
    answer = await host.call("POST", MEMBERS, body, key=host.operator)
    made = answer.json()
    account = await ask(host, "GET", ACCOUNT)
    assert (answer.status_code, made) == (
        201,
        {
            "id": made["id"],
            "externalId": "user_7",
            "email": "ada@example.com",
            "role": "developer",
            "createdAt": made["createdAt"],
            "alertsByEmail": True,
        },
    )
    place = f"/v1/accounts/{account['id']}/members/{made['id']}"
    assert answer.headers["location"] == BASE_URL + place
    assert await ask(host, "GET", MEMBERS) == {"data": [made], "nextCursor": None}


async def test_a_member_is_found_by_the_reference_of_the_host(host: Api) -> None:
    ada = await add(host, externalId="user_7")
    await add(host, externalId="user_8")
    found = await ask(host, "GET", MEMBERS, params={"externalId": "user_7"})
    assert found == {"data": [ada], "nextCursor": None}
    none = await ask(host, "GET", MEMBERS, params={"externalId": "user_9"})
    assert none == {"data": [], "nextCursor": None}


async def test_members_come_in_pages(host: Api) -> None:
    made = [await add(host, externalId=f"user_{number}") for number in range(3)]
    first = await ask(host, "GET", MEMBERS, params={"limit": 2})
    params = {"limit": 2, "cursor": first["nextCursor"]}
    rest = await ask(host, "GET", MEMBERS, params=params)
    assert first["data"] + rest["data"] == made[::-1]
    assert rest["nextCursor"] is None


async def test_a_reference_that_is_taken_is_a_conflict_that_names_the_member(host: Api) -> None:
    made = await add(host, externalId="user_7")
    body = {"role": "viewer", "externalId": "user_7"}
    answer = await host.call("POST", MEMBERS, body, key=host.operator)
    assert problem(answer) == (409, "external_id_taken")
    assert answer.json()["memberId"] == made["id"]
    other = {"name": "Other", "externalId": "cust_2"}
    await ask(host, "POST", "/v1/accounts", other)
    await ask(host, "POST", "/v1/accounts/external:cust_2/members", body)


async def test_of_many_at_once_one_adds_the_member(host: Api) -> None:
    body = {"role": "viewer", "externalId": "user_7"}
    answers = await asyncio.gather(
        *(host.call("POST", MEMBERS, body, key=host.operator) for _ in range(4))
    )
    assert sorted(answer.status_code for answer in answers) == [201, 409, 409, 409]


async def test_a_repetition_with_the_same_idempotency_key_gets_the_first_answer(host: Api) -> None:
    body, headers = {"role": "viewer"}, {"Idempotency-Key": "sign-up-7"}
    first, second = [
        await host.call("POST", MEMBERS, body, key=host.operator, headers=headers) for _ in range(2)
    ]
    assert first.content == second.content
    assert second.headers["idempotency-replayed"] == "true"
    assert len((await ask(host, "GET", MEMBERS))["data"]) == 1


async def test_role_and_reference_are_changed(host: Api) -> None:
    made = await add(host, externalId="user_7")
    path = f"{MEMBERS}/{made['id']}"
    assert await ask(host, "PATCH", path, {"role": "viewer"}) == made | {"role": "viewer"}
    assert await ask(host, "PATCH", path, {}) == made | {"role": "viewer"}
    both = {"role": "owner", "externalId": "user_8"}
    assert await ask(host, "PATCH", path, both) == made | both
    assert await ask(host, "PATCH", path, {"externalId": None}) == made | both | {
        "externalId": None
    }
    await add(host, externalId="user_9")
    assert await refused(host, "PATCH", path, {"externalId": "user_9"}) == (
        409,
        "external_id_taken",
    )


async def test_the_account_keeps_its_last_owner_but_may_begin_without_one(host: Api) -> None:
    await add(host, "viewer")
    owner = await add(host, "owner")
    path = f"{MEMBERS}/{owner['id']}"
    assert await refused(host, "PATCH", path, {"role": "viewer"}) == (409, "last_owner")
    assert await refused(host, "DELETE", path) == (409, "last_owner")
    await add(host, "owner")
    await ask(host, "DELETE", path)
    assert await refused(host, "DELETE", path) == (404, "not_found")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, ("role", "missing_field")),
        ({"role": "king"}, ("role", "invalid_value")),
        ({"role": "viewer", "externalId": "a/b"}, ("externalId", "invalid_external_id")),
        ({"role": "viewer", "email": "ada"}, ("email", "email_invalid")),
        ({"role": "viewer", "password": "x"}, ("password", "unknown_field")),
    ],
)
async def test_what_is_not_valid_is_named(host: Api, body: Any, fault: tuple[str, str]) -> None:
    assert faults(await host.call("POST", MEMBERS, body, key=host.operator)) == [fault]


async def test_an_address_that_is_taken_is_a_conflict(host: Api) -> None:
    await add(host, email="ada@example.com")
    body = {"role": "viewer", "email": "ada@example.com"}
    assert await refused(host, "POST", MEMBERS, body) == (409, "email_taken")


async def test_a_member_of_another_account_is_not_there(host: Api) -> None:
    made = await add(host)
    await ask(host, "POST", "/v1/accounts", {"name": "Other", "externalId": "cust_2"})
    foreign = f"/v1/accounts/external:cust_2/members/{made['id']}"
    before = await host.stored()
    assert await refused(host, "PATCH", foreign, {"role": "owner"}) == (404, "not_found")
    assert await refused(host, "DELETE", foreign) == (404, "not_found")
    assert await host.stored() == before


async def test_the_audit_trail_names_the_operator_key(host: Api) -> None:
    made = await add(host, externalId="user_7")
    await ask(host, "PATCH", f"{MEMBERS}/{made['id']}", {"externalId": "user_8", "role": "viewer"})
    await ask(host, "DELETE", f"{MEMBERS}/{made['id']}")
    key = await ask(host, "POST", f"{ACCOUNT}/keys", {"name": "Server"})
    trail = (await host.done("GET", "/v1/audit", key=key["token"]))["data"][1:5]
    assert {(each["actor"], each["actorName"]) for each in trail} == {(trail[0]["actor"], "test")}
    assert [(each["action"], each["details"]) for each in trail] == [
        ("member.removed", {"externalId": "user_8", "role": "viewer"}),
        ("member.role_changed", {"externalId": "user_8", "role": "viewer", "was": "developer"}),
        ("member.changed", {"externalId": "user_8"}),
        ("member.added", {"externalId": "user_7", "role": "developer"}),
    ]


async def test_an_account_that_is_being_erased_gets_no_members(host: Api) -> None:
    await ask(host, "DELETE", ACCOUNT)
    assert await refused(host, "POST", MEMBERS, {"role": "viewer"}) == (409, "account_erasing")
