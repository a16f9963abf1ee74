"""Signing in with an OpenID provider: who becomes which member, and what is refused."""

import asyncio
import logging
import re
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, replace
from html import unescape
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
import jwt
import pytest

from cuepost.adapters.openid.provider import OpenIdClient, OpenIdProvider
from cuepost.application import sign_in_limits
from cuepost.application.provider_sign_in import SignInWithProvider
from cuepost.domain.access import Account, AccountState, Role
from cuepost.domain.identity import IdentityRules
from cuepost.domain.person import User
from cuepost.ports.records import Page
from tests.application.harness import BASE_URL, Harness
from tests.interfaces.web.page_client import RULES, PageClient, member_of, opened
from tests.support.openid_issuer import (
    CLIENT_ID,
    CLIENT_SECRET,
    UNKNOWN_KEY,
    LocalIssuer,
)

START, BACK = "/sign-in/openid", "/sign-in/openid/callback"
ROLES = IdentityRules(
    "org", "groups", {"admins": Role.OWNER, "dev": Role.DEVELOPER, "all": Role.VIEWER}, None
)
COOKIE = "__Host-cuepost-openid"
PAGE = Page(100)


@dataclass
class Person:
    """A browser, the issuer, and the account that its people belong to."""

    client: PageClient
    issuer: LocalIssuer
    account: Account

    def another(self) -> "Person":
        return replace(self, client=self.client.another())

    async def leave(self, wanted: str = "") -> str:
        """Follow the button of the sign-in page; where the issuer is asked."""
        answer = await self.client.get(f"{START}?{urlencode({'next': wanted})}")
        assert answer.status_code == 303, answer.text
        return answer.headers["location"]

    async def come_back(self, **parameters: str) -> httpx2.Response:
        return await self.client.get(f"{BACK}?{urlencode(parameters)}")

    def consent(self, url: str, **claims: Any) -> dict[str, str]:
        usual = {"sub": "ada-7", "org": str(self.account.id), "groups": ["dev"]}
        return self.issuer.consent(url, **(usual | claims))

    async def sign_in(self, wanted: str = "", **claims: Any) -> httpx2.Response:
        return await self.come_back(**self.consent(await self.leave(wanted), **claims))

    async def members(self) -> list[User]:
        harness = self.client.harness
        found = await harness.see(lambda t: t.users.page(self.account.id, PAGE))
        return list(reversed(found))

    async def trail(self) -> list[tuple[str, str | None, dict[str, str]]]:
        entries = await self.client.harness.audit()
        return [(each.action, each.actor_name, dict(each.details)) for each in reversed(entries)]


def of_client(harness: Harness, client: PageClient, provider: OpenIdProvider) -> PageClient:
    sign_in = client.harness.service.sign_in
    made = SignInWithProvider(sign_in, provider, harness.box, ROLES, "Example ID")
    return client.with_provider(made)


@pytest.fixture
def issuer(harness: Harness) -> Iterator[LocalIssuer]:
    with LocalIssuer(harness.clock) as running:
        yield running


@pytest.fixture
async def provider(harness: Harness, issuer: LocalIssuer) -> AsyncIterator[OpenIdProvider]:
    client = OpenIdClient(issuer.url, CLIENT_ID, CLIENT_SECRET, f"{BASE_URL}{BACK}", ("openid",))
    made = OpenIdProvider(client, harness.clock, ssl.create_default_context())
    yield made
    await made.close()


@pytest.fixture
def person(harness: Harness, issuer: LocalIssuer, provider: OpenIdProvider) -> Person:
    return Person(of_client(harness, opened(harness), provider), issuer, harness.account)


def title(answer: httpx2.Response) -> str:
    found = re.search(r"<h1>(.*?)</h1>", answer.text, re.DOTALL)
    assert found is not None
    return unescape(found[1])


async def assert_not_signed_in(person: Person) -> None:
    dump = await person.client.harness.dump()
    assert (dump["users"], dump["sessions"]) == ([], [])
    assert (await person.client.get("/settings")).status_code == 303
    assert "__Host-cuepost" not in person.client.client.cookies


async def test_a_person_becomes_a_member_and_sees_the_wanted_page(person: Person) -> None:
    page = await person.client.get("/sign-in?next=/settings/deliveries%3Fstatus%3Dfailed")
    assert 'href="/sign-in/openid?next=/settings/deliveries%3Fstatus%3Dfailed"' in page.text
    assert "Sign in with Example ID" in page.text
    answer = await person.sign_in(
        "/settings/deliveries?status=failed", email="Ada@Example.com", email_verified=True
    )
    assert answer.headers["location"] == "/settings/deliveries?status=failed"
    assert (await person.client.get(answer.headers["location"])).status_code == 200
    [user] = await person.members()
    assert (user.email, user.role, user.password_hash) == ("ada@example.com", Role.DEVELOPER, None)
    assert (user.oidc_issuer, user.oidc_subject) == (person.issuer.url, "ada-7")
    assert await person.trail() == [
        ("member.joined", "ada@example.com", {"role": "developer"}),
        ("user.signed_in", "ada@example.com", {"by": "openid", "issuer": person.issuer.url}),
    ]
    trail = await person.client.get("/settings/audit")
    assert f"signed in by <em>openid</em> <em>{person.issuer.url}</em>" in trail.text


async def test_the_same_person_is_the_same_member_in_another_browser(person: Person) -> None:
    await person.sign_in()
    other = person.another()
    assert (await other.sign_in()).headers["location"] == "/settings"
    [user] = await person.members()
    assert user.email is None
    await other.another().sign_in(sub="eve-8")
    assert len(await person.members()) == 2


async def test_the_request_has_pkce_state_nonce_and_a_cookie_for_http_alone(
    person: Person,
) -> None:
    answer = await person.client.get(START)
    query = parse_qs(urlsplit(answer.headers["location"]).query)
    assert query["redirect_uri"] == [f"{BASE_URL}{BACK}"]
    assert query["code_challenge_method"] == ["S256"]
    assert len({query[name][0] for name in ("state", "nonce", "code_challenge")}) == 3
    [cookie] = [each for each in answer.headers.get_list("set-cookie") if each.startswith(COOKIE)]
    for word in ("HttpOnly", "Secure", "SameSite=lax", "Path=/", "Max-Age=600"):
        assert word in cookie
    for name in ("state", "nonce"):
        assert query[name][0] not in cookie


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil", "x"])
async def test_a_sign_in_leads_nowhere_else(person: Person, wanted: str) -> None:
    assert (await person.sign_in(wanted)).headers["location"] == "/settings"


async def test_a_session_of_a_provider_ends_after_a_day(person: Person) -> None:
    await person.sign_in()
    person.client.harness.clock.advance(hours=23, minutes=59)
    assert (await person.client.get("/settings")).status_code == 200
    person.client.harness.clock.advance(minutes=1)
    assert (await person.client.get("/settings")).status_code == 303


Forgery = Callable[[Person], dict[str, Any]]
FORGED: dict[str, Forgery] = {
    "issuer": lambda _: {"iss": "https://other.example"},
    "audience": lambda _: {"aud": "other"},
    "audiences": lambda _: {"aud": [CLIENT_ID, "other"]},
    "nonce": lambda _: {"nonce": "other"},
    "no nonce": lambda _: {"nonce": None},
    "expired": lambda _: {"iat": 1, "exp": 2},
    "future": lambda person: {
        "iat": person.client.harness.clock.now().timestamp() + 3_600,
        "exp": person.client.harness.clock.now().timestamp() + 7_200,
    },
    "no expiry": lambda _: {"exp": None},
    "no subject": lambda _: {"sub": None},
}


@pytest.mark.parametrize("forged", list(FORGED))
async def test_a_token_of_another_sign_in_signs_in_no_one(person: Person, forged: str) -> None:
    answer = await person.sign_in(**FORGED[forged](person))
    assert (answer.status_code, title(answer)) == (403, "Sign-in not verified")
    await assert_not_signed_in(person)


SIGNED: dict[str, Callable[[dict[str, Any]], str]] = {
    "none": lambda claims: jwt.encode(claims, "", "none"),
    "hmac with the secret of the client": lambda claims: jwt.encode(
        claims, CLIENT_SECRET.ljust(32), "HS256", {"kid": "rsa"}
    ),
    "another key": lambda claims: jwt.encode(claims, UNKNOWN_KEY, "RS256", {"kid": "rsa"}),
    "unknown kid": lambda claims: jwt.encode(claims, UNKNOWN_KEY, "RS256", {"kid": "new"}),
    "no token": lambda _: "no.token",
}


@pytest.mark.parametrize("forged", list(SIGNED))
async def test_a_forged_signature_signs_in_no_one(person: Person, forged: str) -> None:
    person.issuer.encode = SIGNED[forged]
    answer = await person.sign_in()
    assert (answer.status_code, title(answer)) == (403, "Sign-in not verified")
    await assert_not_signed_in(person)


async def test_a_response_with_another_state_or_from_another_browser_is_refused(
    person: Person,
) -> None:
    url = await person.leave()
    parameters = person.consent(url)
    stranger = person.another()
    own = person.another()
    await own.leave()
    for who, changed in (
        (person, {"state": "other"}),
        (person, {"state": ""}),
        (person, {"state": "ä"}),
        (stranger, {}),
        (own, {}),
    ):
        answer = await who.come_back(**(parameters | changed))
        assert (answer.status_code, title(answer)) == (400, "This sign-in has ended")
        await assert_not_signed_in(who)
    assert "/token" not in person.issuer.seen
    assert (await person.come_back(**parameters)).status_code == 303


@pytest.mark.parametrize("cookie", ["", "x", "ä", "QUJDREVGR0hJSktMTU5PUFFSU1RVVldYWVo="])
async def test_a_cookie_that_is_not_of_this_service_is_refused(person: Person, cookie: str) -> None:
    parameters = person.consent(await person.leave())
    stranger = person.another()
    sent = {"cookie": f"{COOKIE}={cookie}".encode()}
    path = f"{BACK}?{urlencode(parameters)}"
    assert (await stranger.client.get(path, headers=sent)).status_code == 400
    await assert_not_signed_in(stranger)


async def test_a_response_counts_once_even_with_its_cookie(person: Person) -> None:
    parameters = person.consent(await person.leave())
    cookie = person.client.client.cookies[COOKIE]
    assert (await person.come_back(**parameters)).status_code == 303
    assert COOKIE not in person.client.client.cookies
    sessions = (await person.client.harness.dump())["sessions"]
    thief = person.another()
    thief.client.client.cookies.set(COOKIE, cookie)
    answer = await thief.come_back(**parameters)
    assert (answer.status_code, title(answer)) == (400, "This sign-in has ended")
    assert (await person.client.harness.dump())["sessions"] == sessions
    assert person.issuer.seen.count("/token") == 1


async def test_of_responses_at_once_with_one_cookie_one_counts(person: Person) -> None:
    parameters = person.consent(await person.leave())
    cookie = person.client.client.cookies[COOKIE]
    browsers = [person.another() for _ in range(4)]
    for each in browsers:
        each.client.client.cookies.set(COOKIE, cookie)
    answers = await asyncio.gather(*(each.come_back(**parameters) for each in browsers))
    assert sorted(each.status_code for each in answers) == [303, 400, 400, 400]
    assert len((await person.client.harness.dump())["sessions"]) == 1


async def test_first_sign_ins_of_a_person_at_once_make_one_member(person: Person) -> None:
    browsers = [person.another() for _ in range(4)]
    answers = await asyncio.gather(*(each.sign_in() for each in browsers))
    assert [each.status_code for each in answers] == [303] * 4
    assert len(await person.members()) == 1


async def test_a_sign_in_that_takes_longer_than_ten_minutes_has_ended(person: Person) -> None:
    parameters = person.consent(await person.leave())
    person.client.harness.clock.advance(minutes=10)
    assert (await person.come_back(**parameters)).status_code == 400
    await assert_not_signed_in(person)


async def test_a_response_of_another_issuer_is_refused(person: Person) -> None:
    parameters = person.consent(await person.leave())
    answer = await person.come_back(**parameters, iss="https://other.example")
    assert (answer.status_code, title(answer)) == (403, "Sign-in not verified")
    await assert_not_signed_in(person)


@pytest.mark.parametrize(
    ("error", "status", "heading"),
    [
        ("access_denied", 403, "Sign-in declined"),
        ("server_error", 502, "Example ID reports an error"),
        ("<b>x</b>", 502, "Example ID reports an error"),
    ],
)
async def test_an_error_of_the_provider_is_a_page(
    person: Person, error: str, status: int, heading: str, caplog: pytest.LogCaptureFixture
) -> None:
    url = await person.leave()
    state = parse_qs(urlsplit(url).query)["state"][0]
    with caplog.at_level(logging.WARNING, "cuepost.pages"):
        answer = await person.come_back(error=error, error_description="canary", state=state)
    assert (answer.status_code, title(answer)) == (status, heading)
    assert "<b>x" not in answer.text
    assert "canary" not in answer.text
    [line] = [each.getMessage() for each in caplog.records]
    assert line.startswith("event=openid_sign_in_failed reason=")
    await assert_not_signed_in(person)


async def test_a_provider_that_is_down_leaves_the_other_ways(person: Person) -> None:
    client = person.client
    await member_of(client, Role.VIEWER, "eve@example.com")
    person.issuer.responses["/.well-known/openid-configuration"] = lambda _: None
    answer = await client.get(START)
    assert (answer.status_code, title(answer)) == (502, "Example ID cannot be reached")
    await client.sign_in_as("eve@example.com")
    await person.another().client.sign_in()


async def test_a_provider_that_fails_on_the_way_back_is_a_page(person: Person) -> None:
    parameters = person.consent(await person.leave())
    person.issuer.responses["/token"] = lambda _: None
    answer = await person.come_back(**parameters)
    assert (answer.status_code, title(answer)) == (502, "Example ID cannot be reached")
    await assert_not_signed_in(person)


async def test_failed_sign_ins_are_limited_and_others_given_back(
    person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sign_in_limits, "MOST_PER_ADDRESS", 3)
    for _ in range(4):
        assert (await person.another().sign_in()).status_code == 303
    for _ in range(3):
        assert (await person.another().sign_in(nonce="x")).status_code == 403
    answer = await person.another().sign_in()
    assert answer.status_code == 429


@pytest.mark.parametrize("form", ["{id}", "external:{external}", "{external}"])
async def test_a_claim_names_the_account_in_several_ways(person: Person, form: str) -> None:
    harness, account = person.client.harness, replace(person.account, external_id="acme-1")
    await harness.do(lambda t: t.accounts.save(account))
    org = form.format(id=account.id, external="acme-1")
    assert (await person.sign_in(org=org)).status_code == 303
    assert len(await person.members()) == 1


@pytest.mark.parametrize(
    ("claims", "sentence"),
    [
        ({"org": None}, "Your sign-in names no account of this service."),
        ({"org": ["a", "b"]}, "Your sign-in names several accounts of this service"),
        ({"org": "unknown"}, "Your sign-in names an account that this service does not have."),
        ({"org": "a b"}, "Your sign-in names an account that this service does not have."),
        (
            {"org": "0198c0de-5a3b-7d21-9c4e-000000000009"},
            "Your sign-in names an account that this service does not have.",
        ),
        ({"groups": None}, "Your sign-in gives you no role in this account."),
        ({"groups": ["owner"]}, "Your sign-in gives you no role in this account."),
    ],
)
async def test_a_person_without_account_or_role_is_refused(
    person: Person, claims: dict[str, Any], sentence: str
) -> None:
    answer = await person.sign_in(**claims)
    assert (answer.status_code, title(answer)) == (403, "You cannot sign in")
    assert sentence in unescape(answer.text)
    await assert_not_signed_in(person)


async def test_an_account_that_has_moved_takes_no_one(person: Person) -> None:
    await person.client.harness.do(
        lambda t: t.moves.set_state(person.account.id, AccountState.MOVED)
    )
    answer = await person.sign_in()
    assert (answer.status_code, title(answer)) == (410, "You cannot sign in")
    await assert_not_signed_in(person)


async def test_an_account_whose_access_is_closed_says_so_after_the_sign_in(person: Person) -> None:
    """As after a sign-in with a password."""
    harness = person.client.harness
    await harness.do(lambda t: t.accounts.set_access(person.account.id, False))
    assert (await person.sign_in()).headers["location"] == "/settings"
    assert "not enabled" in (await person.client.get("/settings")).text


async def test_an_account_that_is_being_erased_takes_no_one(person: Person) -> None:
    harness = person.client.harness
    await harness.do(lambda t: t.accounts.start_erasing(person.account.id, harness.clock.now()))
    answer = await person.sign_in()
    assert (answer.status_code, title(answer)) == (409, "You cannot sign in")
    assert "The account is being erased" in answer.text
    await assert_not_signed_in(person)


async def test_a_changed_claim_changes_the_role_and_a_lesser_one_ends_sessions(
    person: Person,
) -> None:
    await person.sign_in(groups="admins")
    promoted = person.another()
    await promoted.sign_in(groups="admins")
    lesser = person.another()
    await lesser.sign_in(groups=["all", "unknown"])
    [user] = await person.members()
    assert user.role is Role.VIEWER
    assert (await lesser.client.get("/settings")).status_code == 200
    for ended in (person, promoted):
        assert (await ended.client.get("/settings")).status_code == 303
    changed = ("member.role_changed", person.issuer.url, {"role": "viewer", "was": "owner"})
    assert changed in await person.trail()
    greater = person.another()
    await greater.sign_in(groups=["dev"])
    assert (await lesser.client.get("/settings")).status_code == 200
    assert [each.role for each in await person.members()] == [Role.DEVELOPER]


async def test_an_email_never_leads_to_an_existing_member(person: Person) -> None:
    """Who has an address at the provider need not be the person who has it here."""
    eve = await member_of(person.client, Role.OWNER, "eve@example.com")
    answer = await person.sign_in(email="eve@example.com", email_verified=True)
    assert (answer.status_code, title(answer)) == (403, "You cannot sign in")
    assert "A member of this account has your e-mail address already." in answer.text
    assert await person.members() == [eve]
    unverified = await person.another().sign_in(email="eve@example.com", email_verified=False)
    assert unverified.status_code == 303
    assert [each.email for each in await person.members()] == ["eve@example.com", None]


async def test_an_email_of_another_account_is_left_out(person: Person) -> None:
    await member_of(person.client, Role.OWNER, "eve@example.com")
    harness = person.client.harness
    other = (await harness.new_owner()).account
    answer = await person.sign_in(org=str(other), email="eve@example.com", email_verified=True)
    assert answer.status_code == 303
    [user] = await harness.see(lambda t: t.users.page(other, PAGE))
    assert (user.email, user.oidc_subject) == (None, "ada-7")


async def test_an_email_follows_the_provider_unless_the_member_has_a_password(
    person: Person,
) -> None:
    await person.sign_in()
    for email in ("ada@example.com", "ada@new.example"):
        await person.another().sign_in(email=email, email_verified=True)
        assert [each.email for each in await person.members()] == [email]
    await member_of(person.client, Role.VIEWER, "eve@example.com")
    await person.another().sign_in(email="eve@example.com", email_verified=True)
    assert (await person.members())[0].email == "ada@new.example"


async def connected(person: Person, **claims: Any) -> httpx2.Response:
    page = await person.client.post("/settings/account/connect")
    found = re.search(r'href="(http[^"]+)">Continue at Example ID', page.text)
    assert found is not None
    return await person.come_back(**person.consent(unescape(found[1]), **claims))


async def test_a_signed_in_member_connects_the_sign_in(person: Person) -> None:
    eve = await member_of(person.client, Role.VIEWER, "eve@example.com")
    await person.client.sign_in_as("eve@example.com")
    assert "Connect with Example ID" in person.client.last
    answer = await connected(person, groups="all")
    assert answer.headers["location"] == "/settings/account?note=connected"
    page = await person.client.get(answer.headers["location"])
    assert f"You sign in with <strong>{person.issuer.url}</strong>" in page.text
    assert [each.id for each in await person.members()] == [eve.id]
    assert (await person.another().sign_in(groups="all")).status_code == 303
    assert [each.id for each in await person.members()] == [eve.id]
    actions = [action for action, _, _ in await person.trail()]
    assert actions[-3:] == ["user.identity_connected", "user.signed_in", "user.signed_in"]


async def test_a_sign_in_of_another_member_or_account_cannot_be_connected(
    person: Person,
) -> None:
    await person.another().sign_in()
    await member_of(person.client, Role.VIEWER, "eve@example.com")
    await person.client.sign_in_as("eve@example.com")
    before = await person.members()
    answer = await connected(person)
    assert (answer.status_code, "connected with another member" in answer.text) == (403, True)
    other = (await person.client.harness.new_owner()).account
    await person.client.get("/settings/account")
    answer = await connected(person, sub="eve-8", org=str(other))
    assert (answer.status_code, "for another account" in answer.text) == (403, True)
    assert await person.members() == before


async def test_a_member_who_has_signed_out_is_not_connected(person: Person) -> None:
    await member_of(person.client, Role.VIEWER, "eve@example.com")
    await person.client.sign_in_as("eve@example.com")
    page = await person.client.post("/settings/account/connect")
    found = re.search(r'href="(http[^"]+)">Continue', page.text)
    assert found is not None
    await person.client.done("/sign-out", _token=person.client.token())
    answer = await person.come_back(**person.consent(unescape(found[1])))
    assert (answer.status_code, title(answer)) == (400, "This sign-in has ended")


async def test_without_a_provider_there_is_neither_button_nor_page(stranger: PageClient) -> None:
    page = await stranger.get("/sign-in")
    assert "openid" not in page.text
    for path in (START, BACK):
        assert (await stranger.get(path)).status_code == 404
    await stranger.sign_in()
    assert "connect" not in stranger.last
    assert (await stranger.post("/settings/account/connect")).status_code == 404


async def test_passwords_can_be_switched_off(
    harness: Harness, issuer: LocalIssuer, provider: OpenIdProvider
) -> None:
    usual = opened(harness)
    await member_of(usual, Role.OWNER, "eve@example.com")
    invited = await usual.harness.do(
        usual.harness.service.members.invite, harness.owner, Role.VIEWER, None
    )
    client = of_client(harness, opened(harness, replace(RULES, password_sign_in=False)), provider)
    page = await client.get("/sign-in")
    assert 'type="password"' not in page.text
    assert "Sign in with Example ID" in page.text
    await client.get("/sign-in")
    form = {"email": "eve@example.com", "password": "correct horse battery"}
    token = (await usual.get("/sign-in"), usual.token())[1]
    client.client.cookies = usual.client.cookies
    refused = await client.post("/sign-in", **form, _token=token)
    assert (refused.status_code, "Passwords are switched off" in refused.text) == (403, True)
    assert (await client.get(invited.url.removeprefix(BASE_URL))).status_code == 403
    owner = await client.another().sign_in()
    assert 'type="password"' not in owner.last
    assert (await owner.post("/settings/account", **form)).status_code == 403
    members = await owner.get("/settings/members")
    assert "Create invitation link" not in members.text
    assert (await owner.post("/settings/members", role="viewer")).status_code == 403
    person = Person(client.another(), issuer, harness.account)
    assert (await person.sign_in()).status_code == 303
