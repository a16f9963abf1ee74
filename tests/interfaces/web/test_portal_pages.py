"""How the user of a host product comes into the pages, and goes back."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx2
import pytest

from cuepost.application.portal import NewPortalLink, WantedLink
from cuepost.domain.access import Role
from cuepost.domain.colour import AA, contrast
from cuepost.domain.portal import PORTAL_SESSION_LIFE, ColourScheme, PortalPolicy, PortalTheme
from cuepost.interfaces.rest.app import create_app
from cuepost.interfaces.rest.open_pages import HealthChecks
from cuepost.interfaces.web.app import PAGES, create_pages
from cuepost.interfaces.web.protection import content_policy
from tests.application.harness import BASE_URL, OPERATOR, Harness
from tests.interfaces.web.owned_objects import owned_objects_of
from tests.interfaces.web.page_client import RULES, PageClient, member_of, opened

HOST = "https://app.example.com"
BACK = f"{HOST}/settings?tab=webhooks"
ENDED = "This session has ended"
# What a viewer may send; the last one is refused by the use case, and needs a provider.
UNHARMFUL = {
    "/sign-out",
    "/settings/account/alerts",
    "/settings/doctor",
    "/settings/account/connect",
}


@pytest.fixture
def client(harness: Harness) -> PageClient:
    return opened(harness, replace(RULES, portal=PortalPolicy((HOST,))))


def framed(client: PageClient) -> PageClient:
    """The same service, which lets the host show the pages in a frame."""
    service, store = client.harness.service, client.harness.store
    app = create_app(
        service,
        base_url=BASE_URL,
        health=HealthChecks(store.check),
        further_routes=create_pages(service, base_url=BASE_URL, frame_ancestors=(HOST,)),
    )
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url=BASE_URL)
    return PageClient(client.harness, http)


async def link(client: PageClient, **more: Any) -> NewPortalLink:
    wanted = WantedLink("user_7", Role.DEVELOPER, **more)
    harness = client.harness
    return await harness.do(harness.service.portal.create, OPERATOR, harness.account.id, wanted)


def path_of(made: NewPortalLink) -> str:
    return made.url.removeprefix(BASE_URL)


async def enter(client: PageClient, **more: Any) -> NewPortalLink:
    made = await link(client, **more)
    assert (await client.get(path_of(made))).status_code == 200
    assert await client.done(path_of(made)) == "/settings"
    return made


async def test_a_link_signs_in_once_and_looking_does_not_use_it_up(client: PageClient) -> None:
    made = await link(client)
    for _ in range(3):
        shown = await client.get(path_of(made))
        assert shown.status_code == 200
    assert await client.done(path_of(made)) == "/settings"
    assert (await client.get("/settings/webhooks")).status_code == 200
    other = client.another()
    for answer in (await other.get(path_of(made)), await other.post(path_of(made))):
        assert answer.status_code in (403, 404)
    assert (await other.get("/settings")).headers["location"].startswith("/sign-in")


async def test_of_two_who_use_a_link_at_once_one_is_signed_in(client: PageClient) -> None:
    made = await link(client)
    people = [client.another() for _ in range(4)]
    for each in people:
        await each.get(path_of(made))
    answers = await asyncio.gather(*(each.post(path_of(made)) for each in people))
    assert sorted(answer.status_code for answer in answers) == [303, 404, 404, 404]
    assert len((await client.harness.dump())["sessions"]) == 1


async def test_an_expired_link_signs_no_one_in(client: PageClient) -> None:
    made = await link(client, life=timedelta(seconds=60))
    await client.get(path_of(made))
    client.harness.clock.advance(60)
    answer = await client.post(path_of(made))
    assert answer.status_code == 404
    assert "Open this page again from the product that you came from." in answer.text


async def test_a_revoked_link_signs_no_one_in_and_ends_the_session(client: PageClient) -> None:
    harness = client.harness
    made = await enter(client)
    unused = await link(client)
    late = client.another()
    await late.get(path_of(unused))
    for each in (made, unused):
        await harness.do(harness.service.portal.revoke, OPERATOR, harness.account.id, each.link.id)
    assert (await late.post(path_of(unused))).status_code == 404
    ended = await client.get("/settings/webhooks")
    assert ended.status_code == 401
    assert ENDED in ended.text
    assert (await client.get("/settings")).headers["location"].startswith("/sign-in")


async def test_a_fragment_of_an_ended_session_leads_to_the_whole_page(
    client: PageClient,
) -> None:
    made = await enter(client)
    harness = client.harness
    await harness.do(harness.service.portal.revoke, OPERATOR, harness.account.id, made.link.id)
    answer = await client.get("/settings/webhooks", headers={"hx-request": "true"})
    assert answer.headers["hx-redirect"] == "/settings"
    assert ENDED in (await client.get("/settings")).text


async def test_the_session_ends_by_itself(client: PageClient) -> None:
    await enter(client)
    client.harness.clock.advance(PORTAL_SESSION_LIFE.total_seconds() - 1)
    assert (await client.get("/settings/webhooks")).status_code == 200
    client.harness.clock.advance(1)
    assert (await client.get("/settings/webhooks")).status_code in (303, 401)


async def test_the_pages_lead_back_and_show_the_theme_of_the_host(client: PageClient) -> None:
    theme = PortalTheme("#FFEE00", f"{HOST}/logo.svg", ColourScheme.DARK)
    made = await link(client, return_url=BACK, theme=theme)
    shown = await client.get(path_of(made))
    await client.done(path_of(made))
    page = await client.get("/settings/webhooks")
    for each in (shown, page):
        assert f'href="{BACK}" target="_top"' in each.text
        assert "Back to app.example.com" in each.text
        assert f'src="{HOST}/logo.svg"' in each.text
        assert 'data-theme="dark"' in each.text
        assert '<link rel="stylesheet" href="/static/accent/ffee00.css">' in each.text
        policy = each.headers["content-security-policy"]
        assert policy == content_policy((), HOST)
        assert f"img-src 'self' data: {HOST};" in policy
    assert 'action="/theme"' not in page.text
    assert 'href="/settings/account"' not in page.text


async def test_the_pages_name_a_member_without_e_mail_by_the_reference_of_the_host(
    client: PageClient,
) -> None:
    await enter(client)
    assert "user_7 (you)" in (await client.get("/settings/members")).text
    owner = await client.another().sign_in()
    trail = (await owner.get("/settings/audit")).text
    assert "<strong>user_7</strong> signed in by <em>portal</em>" in trail
    assert "created a portal link for <em>user_7</em> as <em>developer</em>" in trail


async def test_without_a_theme_the_pages_and_their_policy_are_as_always(
    client: PageClient,
) -> None:
    await enter(client)
    page = await client.get("/settings/webhooks")
    assert page.headers["content-security-policy"] == content_policy()
    assert "Back to" not in page.text
    assert "/static/accent/" not in page.text


@pytest.mark.parametrize("accent", ["ffee00", "0b6e4f", "000000", "ffffff", "777777"])
async def test_the_stylesheet_of_an_accent_can_be_read(client: PageClient, accent: str) -> None:
    answer = await client.get(f"/static/accent/{accent}.css")
    assert answer.headers["content-type"] == "text/css; charset=utf-8"
    lines = dict(
        line.strip().rstrip(";").split(": ") for line in answer.text.splitlines() if ": " in line
    )
    ground, text = lines["--pico-primary-background"], lines["--pico-primary-inverse"]
    assert (ground, contrast(ground, text) >= AA) == (f"#{accent}", True)
    light, dark = lines["--pico-primary"].removeprefix("light-dark(").rstrip(")").split(", ")
    assert contrast(light, "#f5f6fa") >= AA
    assert contrast(dark, "#1d222d") >= AA


async def test_a_stylesheet_of_no_colour_is_not_there(client: PageClient) -> None:
    for name in ("green", "0b6e4", "0b6e4f%7D"):
        assert (await client.get(f"/static/accent/{name}.css")).status_code == 404


async def test_the_host_manages_how_its_user_signs_in(client: PageClient) -> None:
    """Otherwise the user could stay, with a password, when the host has ended the session."""
    await enter(client)
    await client.get("/settings/webhooks")
    form = {"email": "eve@example.com", "password": "correct horse battery"}
    for answer in (
        await client.post("/settings/account", **form),
        await client.get("/settings/account"),
    ):
        assert answer.status_code == 403
        assert "manages how you sign in" in answer.text
    [user] = (await client.harness.dump())["users"]
    assert (user.email, user.password_hash) == (None, None)


async def test_signing_out_ends_the_session_and_leads_back(client: PageClient) -> None:
    await enter(client, return_url=BACK)
    await client.get("/settings/webhooks")
    answer = await client.post("/sign-out")
    assert ENDED in answer.text
    assert f'href="{BACK}"' in answer.text
    assert (await client.harness.dump())["sessions"] == []
    assert (await client.get("/settings")).headers["location"].startswith("/sign-in")


async def test_a_portal_session_goes_before_an_own_one_which_comes_back(
    client: PageClient,
) -> None:
    await member_of(client, Role.VIEWER, "eve@example.com")
    await client.sign_in_as("eve@example.com")
    await enter(client)
    assert "eve@example.com" not in (await client.get("/settings/webhooks")).text
    await client.post("/sign-out")
    assert "eve@example.com" in (await client.get("/settings/webhooks")).text


async def test_signing_in_by_password_leaves_the_portal(client: PageClient) -> None:
    made = await enter(client)
    harness = client.harness
    await harness.do(harness.service.portal.revoke, OPERATOR, harness.account.id, made.link.id)
    await member_of(client, Role.VIEWER, "eve@example.com")
    await client.sign_in_as("eve@example.com")
    assert "eve@example.com" in (await client.get("/settings/webhooks")).text


async def test_a_viewer_of_the_host_is_refused_every_form(sqlite_harness: Harness) -> None:
    """Of every route there is, as for other viewers."""
    client = opened(sqlite_harness)
    owned = await owned_objects_of(client)
    harness = client.harness
    made = await harness.do(
        harness.service.portal.create,
        OPERATOR,
        harness.account.id,
        WantedLink("user_9", Role.VIEWER),
    )
    await client.get(path_of(made))
    assert await client.done(path_of(made)) == "/settings"
    await client.get("/settings/webhooks")
    token, before = client.token(), await sqlite_harness.dump()
    for page in PAGES:
        if page.post is None or page.is_open or page.path in UNHARMFUL:
            continue
        answer = await client.post(owned.path_to(page), _token=token, role="owner", url="x")
        assert answer.status_code == 403, page.path
    assert await sqlite_harness.dump() == before


@pytest.mark.parametrize(
    ("headers", "at_once"),
    [
        ({}, False),
        ({"referer": f"{HOST}/customers/1"}, True),
        ({"referer": "https://evil.example.com/"}, False),
        ({"sec-fetch-dest": "iframe"}, False),
        ({"sec-fetch-dest": "document"}, False),
    ],
)
async def test_only_the_host_signs_its_user_in_without_a_click(
    client: PageClient, headers: dict[str, str], at_once: bool
) -> None:
    shown = await client.get(path_of(await link(client)), headers=headers)
    assert ("data-submit-at-once" in shown.text) is at_once


async def test_in_a_frame_of_the_host_no_click_is_needed(client: PageClient) -> None:
    client = framed(client)
    shown = await client.get(path_of(await link(client)), headers={"sec-fetch-dest": "iframe"})
    assert "data-submit-at-once" in shown.text


async def test_frames_are_for_the_listed_origins_and_portal_cookies_alone(
    client: PageClient,
) -> None:
    client = framed(client)
    made = await link(client)
    shown = await client.get(path_of(made))
    entered = await client.post(path_of(made))
    page = await client.get("/settings/webhooks")
    for answer in (shown, entered, page, await client.get("/nothing", headers=_HTML)):
        policy = answer.headers["content-security-policy"]
        assert policy.endswith(f"frame-ancestors {HOST}")
        assert "x-frame-options" not in answer.headers
    attributes = "Path=/; Secure; HttpOnly; SameSite=None; Partitioned"
    [before] = shown.headers.get_list("set-cookie")
    assert before.startswith("__Host-cuepost-context-portal=")
    assert before.endswith(f"; {attributes}")
    session, gone = entered.headers.get_list("set-cookie")
    assert session.startswith("__Host-cuepost-portal=")
    assert session.endswith(f"; Max-Age=43200; {attributes}")
    assert gone == f'__Host-cuepost-context-portal=""; Max-Age=0; {attributes}'
    operators = await client.get("/operator/sign-in")
    assert operators.headers["content-security-policy"] == content_policy()
    plain = await framed(client).get("/sign-in")
    [own] = plain.headers.get_list("set-cookie")
    assert own.startswith("__Host-cuepost-context=")
    assert "samesite=lax" in own.lower()


_HTML = {"accept": "text/html"}


async def test_without_the_setting_there_are_no_frames(client: PageClient) -> None:
    made = await link(client)
    shown = await client.get(path_of(made))
    assert shown.headers["content-security-policy"].endswith("frame-ancestors 'none'")
    [cookie] = shown.headers.get_list("set-cookie")
    assert "samesite=lax" in cookie.lower()


async def test_a_form_of_another_site_is_refused_in_a_portal_session_too(
    client: PageClient,
) -> None:
    client = framed(client)
    await enter(client)
    await client.get("/settings/webhooks")
    token = client.token()
    client.sent = {"sec-fetch-site": "cross-site", "origin": HOST}
    assert (await client.post("/sign-out", _token=token)).status_code == 403
    client.sent = {"sec-fetch-site": "same-origin"}
    assert (await client.post("/sign-out", _token="wrong")).status_code == 403
    assert (await client.get("/settings/webhooks")).status_code == 200


async def test_a_link_of_a_removed_member_signs_no_one_in(client: PageClient) -> None:
    made = await link(client)
    await client.get(path_of(made))
    harness = client.harness
    members = harness.service.members
    await harness.do(members.remove, harness.owner, UUID(str(made.user.id)))
    assert (await client.post(path_of(made))).status_code == 404
