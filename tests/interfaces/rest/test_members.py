"""Members and invitations over REST."""

from typing import Any

from cuepost.domain.access import Role, Scope
from cuepost.domain.audit import Action
from tests.application.harness import BASE_URL, OPERATOR
from tests.interfaces.rest.client import Api, problem

MEMBERS, INVITATIONS = "/v1/members", "/v1/invitations"


async def owner_of(api: Api) -> dict[str, Any]:
    harness = api.harness
    await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    [member] = (await api.done("GET", MEMBERS))["data"]
    return dict(member)


async def test_an_invitation_shows_its_link_once(api: Api) -> None:
    made = await api.done("POST", INVITATIONS, {"role": "viewer", "email": "Ada@example.com"})
    url = made.pop("url")
    assert url.startswith(f"{BASE_URL}/join/")
    assert (made["email"], made["role"]) == ("ada@example.com", "viewer")
    assert made["emailQueued"] is False
    assert await api.done("GET", INVITATIONS) == {"data": [made], "nextCursor": None}
    answer = await api.call("DELETE", f"{INVITATIONS}/{made['id']}")
    assert (answer.status_code, answer.content) == (204, b"")
    assert (await api.done("GET", INVITATIONS))["data"] == []


async def test_an_invitation_is_sent_again_with_a_new_link(api: Api) -> None:
    made = await api.done("POST", INVITATIONS, {"role": "viewer", "email": "ada@example.com"})
    answer = await api.call("POST", f"{INVITATIONS}/{made['id']}/resend")
    again = answer.json()
    assert answer.status_code == 201
    assert answer.headers["location"] == f"{BASE_URL}{INVITATIONS}/{again['id']}"
    assert {name for name in made if made[name] == again[name]} >= {"email", "role", "emailQueued"}
    assert again["url"] != made["url"]
    again.pop("url")
    assert (await api.done("GET", INVITATIONS))["data"] == [again]
    gone = await api.call("POST", f"{INVITATIONS}/{made['id']}/resend")
    assert problem(gone) == (404, "not_found")
    trail = (await api.done("GET", "/v1/audit"))["data"]
    assert trail[0]["action"] == Action.INVITATION_RESENT


async def test_a_repeated_request_gets_the_same_link(api: Api) -> None:
    headers = {"Idempotency-Key": "invite-ada"}
    first, again = [
        await api.call("POST", INVITATIONS, {"role": "viewer"}, headers=headers) for _ in range(2)
    ]
    assert (first.status_code, first.json()) == (201, again.json())
    assert again.headers["idempotency-replayed"] == "true"


async def test_what_cannot_be_invited_is_refused(api: Api) -> None:
    for body in ({"role": "king"}, {}, {"role": "viewer", "email": "ada"}):
        answer = await api.call("POST", INVITATIONS, body)
        assert answer.status_code == 422, body


async def test_the_last_owner_stays(api: Api) -> None:
    owner = await owner_of(api)
    assert owner["role"] == "owner"
    assert owner["email"] is None
    path = f"{MEMBERS}/{owner['id']}"
    assert problem(await api.call("PATCH", path, {"role": "viewer"})) == (409, "last_owner")
    assert problem(await api.call("DELETE", path)) == (409, "last_owner")


async def test_alerts_by_e_mail_are_switched_for_a_member(api: Api) -> None:
    owner = await owner_of(api)
    path = f"{MEMBERS}/{owner['id']}"
    assert await api.done("GET", path) == owner | {"alertsByEmail": True}
    off = owner | {"alertsByEmail": False}
    for _ in range(2):
        assert await api.done("PATCH", path, {"alertsByEmail": False}) == off
    assert await api.done("GET", path) == off
    assert await api.done("PATCH", path, {}) == off
    trail = (await api.done("GET", "/v1/audit"))["data"]
    noted = [each["details"] for each in trail if each["action"] == Action.ALERTS_CHANGED]
    assert noted == [{"alerts": "off"}]
    both = {"role": "owner", "alertsByEmail": True}
    assert await api.done("PATCH", path, both) == owner


async def test_a_role_is_changed_and_a_member_removed(api: Api) -> None:
    owner, harness = await owner_of(api), api.harness
    second = harness.ids(harness.clock.now())
    [first] = await harness.see(lambda t: t.users.owners(harness.account.id))
    assert str(first.id) == owner["id"]
    made = type(first)(harness.account.id, second, harness.clock.now(), role=Role.OWNER)
    await harness.do(lambda t: t.users.add(made))
    path = f"{MEMBERS}/{second}"
    changed = await api.done("PATCH", path, {"role": "developer"})
    assert (changed["id"], changed["role"]) == (str(second), "developer")
    assert (await api.call("DELETE", path)).status_code == 204
    assert problem(await api.call("DELETE", path)) == (404, "not_found")
    trail = (await api.done("GET", "/v1/audit"))["data"]
    assert [each["action"] for each in trail[:2]] == [Action.MEMBER_REMOVED, Action.ROLE_CHANGED]
    assert trail[0]["actorName"] == "test"


async def test_reading_members_does_not_allow_changing_them(api: Api) -> None:
    key = await api.new_key(frozenset({Scope.MEMBERS_READ}))
    assert (await api.call("GET", MEMBERS, key=key)).status_code == 200
    answer = await api.call("POST", INVITATIONS, {"role": "owner"}, key=key)
    assert problem(answer) == (403, "missing_scope")
    made = await api.done("POST", INVITATIONS, {"role": "viewer"})
    answer = await api.call("POST", f"{INVITATIONS}/{made['id']}/resend", key=key)
    assert problem(answer) == (403, "missing_scope")
