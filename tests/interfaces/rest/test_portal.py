"""Portal links over REST: made, revoked, and what they may not say."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from cuepost.application.service import Rules
from cuepost.domain.access import ACCOUNT_SCOPES, Scope
from cuepost.domain.egress_policy import EgressPolicy
from cuepost.domain.person import opaque_token_digest
from cuepost.domain.portal import PortalPolicy
from tests.application.harness import BASE_URL, Harness
from tests.interfaces.rest.client import Api, faults, opened, problem

HOST = "https://app.example.com"
ACCOUNT = "/v1/accounts/external:cust_1"
LINKS = f"{ACCOUNT}/portal-links"
SESSIONS = f"{ACCOUNT}/portal-sessions"
RULES = Rules(BASE_URL, EgressPolicy(), requests_per_minute=10_000, portal=PortalPolicy((HOST,)))


@pytest.fixture
async def host(harness: Harness) -> Api:
    api = await opened(harness, RULES)
    body = {"name": "Harbour Films", "externalId": "cust_1", "webhooksAccess": "open"}
    await api.done("POST", "/v1/accounts", body, key=api.operator)
    return api


async def ask(api: Api, method: str, path: str, body: Any = None, **more: Any) -> Any:
    return await api.done(method, path, body, key=api.operator, **more)


async def link(api: Api, member: str = "external:user_7", **more: Any) -> Any:
    return await ask(api, "POST", LINKS, {"member": member, "role": "viewer"} | more)


async def members(api: Api) -> Any:
    return (await ask(api, "GET", f"{ACCOUNT}/members"))["data"]


async def enter(api: Api, made: Any) -> str:
    """The token of the session."""
    token = made["url"].removeprefix(f"{BASE_URL}/portal/")
    return (await api.harness.do(api.harness.service.portal.enter, token, None)).token


async def is_signed_in(api: Api, token: str) -> bool:
    found = await api.harness.see(lambda t: t.sessions.find(opaque_token_digest(token)))
    return found is not None


async def test_a_link_makes_the_member_and_says_until_when_it_works(host: Api) -> None:
    body = {
        "member": "external:user_7",
        "role": "developer",
        "lifetimeSeconds": 60,
        "returnUrl": f"{HOST}/settings",
        "theme": {"accent": "#0b6e4f", "logoUrl": f"{HOST}/logo.svg", "mode": "dark"},
    }
    answer = await host.call("POST", LINKS, body, key=host.operator)
    made, [member] = answer.json(), await members(host)
    account = await ask(host, "GET", ACCOUNT)
    assert (member["externalId"], member["role"]) == ("user_7", "developer")
    assert (answer.status_code, made) == (
        201,
        {
            "id": made["id"],
            "memberId": member["id"],
            "role": "developer",
            "url": made["url"],
            "createdAt": made["createdAt"],
            "expiresAt": made["expiresAt"],
        },
    )
    life = datetime.fromisoformat(made["expiresAt"]) - datetime.fromisoformat(made["createdAt"])
    assert life == timedelta(seconds=60)
    assert made["url"].startswith(f"{BASE_URL}/portal/")
    place = f"/v1/accounts/{account['id']}/portal-links/{made['id']}"
    assert answer.headers["location"] == BASE_URL + place
    token = made["url"].removeprefix(f"{BASE_URL}/portal/")
    assert token not in str(await host.harness.dump())


async def test_a_second_link_is_for_the_same_member_who_gets_the_role(host: Api) -> None:
    first = await link(host)
    second = await link(host, role="developer")
    by_id = await link(host, first["memberId"], role=None)
    assert first["memberId"] == second["memberId"] == by_id["memberId"]
    assert [each["role"] for each in (first, second, by_id)] == ["viewer", *["developer"] * 2]
    assert len(await members(host)) == 1


async def test_a_lesser_role_ends_the_sessions_of_the_member(host: Api) -> None:
    session = await enter(host, await link(host, role="developer"))
    await link(host, role="developer")
    assert await is_signed_in(host, session)
    await link(host, role="viewer")
    assert not await is_signed_in(host, session)


async def test_the_last_owner_keeps_the_role(host: Api) -> None:
    await link(host, role="owner")
    body = {"member": "external:user_7", "role": "viewer"}
    answer = await host.call("POST", LINKS, body, key=host.operator)
    assert problem(answer) == (409, "last_owner")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({"member": None}, ("member", "wrong_type")),
        ({"member": "user_7"}, ("member", "invalid_member")),
        ({"member": "external:a/b"}, ("member", "invalid_member")),
        ({"role": None}, ("role", "missing_field")),
        ({"role": "king"}, ("role", "invalid_value")),
        ({"lifetimeSeconds": 9}, ("lifetimeSeconds", "too_small")),
        ({"lifetimeSeconds": 3601}, ("lifetimeSeconds", "too_large")),
        ({"returnUrl": "https://evil.example.com/"}, ("returnUrl", "origin_not_allowed")),
        ({"returnUrl": "javascript:alert(1)"}, ("returnUrl", "invalid_url")),
        ({"theme": {"accent": "green"}}, ("theme.accent", "invalid_colour")),
        ({"theme": {"logoUrl": "https://a.example/x"}}, ("theme.logoUrl", "origin_not_allowed")),
        ({"theme": {"mode": "blue"}}, ("theme.mode", "invalid_value")),
        ({"theme": {"css": "x"}}, ("theme.css", "unknown_field")),
    ],
)
async def test_what_is_not_valid_is_named_and_makes_no_member(
    host: Api, body: Any, fault: tuple[str, str]
) -> None:
    wanted = {"member": "external:user_7", "role": "viewer"} | body
    answer = await host.call("POST", LINKS, wanted, key=host.operator)
    assert faults(answer) == [fault]
    assert await members(host) == []


async def test_without_the_setting_a_link_leads_nowhere_else(api: Api) -> None:
    path = f"/v1/accounts/{api.harness.account.id}/portal-links"
    body = {"member": "external:user_7", "role": "viewer", "returnUrl": f"{HOST}/"}
    answer = await api.call("POST", path, body, key=api.operator)
    assert faults(answer) == [("returnUrl", "origin_not_allowed")]
    assert "CUEPOST_PORTAL_ORIGINS" in answer.json()["errors"][0]["message"]


async def test_a_repetition_with_the_same_idempotency_key_gets_the_same_link(host: Api) -> None:
    body = {"member": "external:user_7", "role": "viewer"}
    first, second = [
        await host.call(
            "POST", LINKS, body, key=host.operator, headers={"Idempotency-Key": "open-1"}
        )
        for _ in range(2)
    ]
    assert first.content == second.content


@pytest.mark.parametrize("is_used", [True, False])
async def test_a_revoked_link_ends_with_its_session(host: Api, is_used: bool) -> None:
    made, other = await link(host), await link(host)
    kept = await enter(host, other)
    session = await enter(host, made) if is_used else None
    await ask(host, "DELETE", f"{LINKS}/{made['id']}")
    if session is not None:
        assert not await is_signed_in(host, session)
    assert await is_signed_in(host, kept)
    again = await host.call("DELETE", f"{LINKS}/{made['id']}", key=host.operator)
    assert problem(again) == (404, "not_found")


@pytest.mark.parametrize("member", [None, "external:user_7", "id"])
async def test_portal_sessions_end_together(host: Api, member: str | None) -> None:
    mine, theirs = await link(host), await link(host, "external:user_8")
    sessions = [await enter(host, mine), await enter(host, theirs)]
    named = mine["memberId"] if member == "id" else member
    await ask(host, "DELETE", SESSIONS, params={"member": named} if named else {})
    assert [await is_signed_in(host, each) for each in sessions] == [False, named is not None]


async def test_a_member_that_does_not_exist_has_no_sessions_to_end(host: Api) -> None:
    for member in ("external:user_9", "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"):
        answer = await host.call("DELETE", SESSIONS, key=host.operator, params={"member": member})
        assert problem(answer) == (404, "not_found")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", f"{ACCOUNT}/members/MEMBER"),
        ("POST", f"{ACCOUNT}/close-access"),
        ("DELETE", ACCOUNT),
    ],
)
async def test_sessions_and_links_end_with_what_they_belong_to(
    host: Api, method: str, path: str
) -> None:
    made, unused = await link(host), await link(host)
    session = await enter(host, made)
    await ask(host, method, path.replace("MEMBER", made["memberId"]))
    assert not await is_signed_in(host, session)
    left = (await host.harness.dump())["portal_links"]
    assert left == []
    assert unused["id"] != made["id"]


async def test_links_of_another_account_are_not_there(host: Api) -> None:
    made = await link(host)
    session = await enter(host, made)
    other = {"name": "Other", "externalId": "cust_2"}
    await ask(host, "POST", "/v1/accounts", other)
    foreign = "/v1/accounts/external:cust_2"
    before = await host.stored()
    for method, path, body, params in (
        ("DELETE", f"{foreign}/portal-links/{made['id']}", None, {}),
        ("DELETE", f"{foreign}/portal-sessions", None, {"member": made["memberId"]}),
        ("POST", f"{foreign}/portal-links", {"member": made["memberId"]}, {}),
    ):
        answer = await host.call(method, path, body, key=host.operator, params=params)
        assert problem(answer) == (404, "not_found")
    assert await host.stored() == before
    await ask(host, "DELETE", f"{foreign}/portal-sessions")
    assert await is_signed_in(host, session)


async def test_a_key_that_only_makes_links_does_nothing_else(host: Api) -> None:
    key = await host.new_key({Scope.PORTAL_CREATE})
    body = {"member": "external:user_7", "role": "viewer"}
    assert (await host.call("POST", LINKS, body, key=key)).status_code == 201
    answer = await host.call("GET", f"{ACCOUNT}/members", key=key)
    assert problem(answer) == (403, "missing_scope")
    account_key = await host.new_key(ACCOUNT_SCOPES)
    answer = await host.call("POST", LINKS, body, key=account_key)
    assert problem(answer) == (403, "wrong_kind_of_key")


async def test_the_audit_trail_names_the_operator_key_and_the_member(host: Api) -> None:
    made = await link(host)
    await enter(host, made)
    await ask(host, "DELETE", f"{LINKS}/{made['id']}")
    await ask(host, "DELETE", SESSIONS)
    key = await ask(host, "POST", f"{ACCOUNT}/keys", {"name": "Server"})
    trail = (await host.done("GET", "/v1/audit", key=key["token"]))["data"][1:6]
    assert [(each["action"], each["actorName"], each["details"]) for each in trail] == [
        ("portal.sessions_ended", "test", {}),
        ("portal.link_revoked", "test", {}),
        ("user.signed_in", "user_7", {"by": "portal"}),
        (
            "portal.link_created",
            "test",
            {"role": "viewer", "member": made["memberId"], "externalId": "user_7"},
        ),
        ("member.added", "test", {"externalId": "user_7", "role": "viewer"}),
    ]
