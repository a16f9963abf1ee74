"""Members in the pages: invited, joined, given a role, removed; and what each role is refused."""

import re
from dataclasses import replace

import pytest

from cuepost.domain.access import Role
from cuepost.domain.errors import EmailTaken
from cuepost.interfaces.web.app import PAGES
from cuepost.interfaces.web.page_context import PageRoute
from cuepost.ports.records import Page
from tests.application.harness import BASE_URL, Harness
from tests.interfaces.web.owned_objects import owned_objects_of
from tests.interfaces.web.page_client import PASSWORD, RULES, PageClient, member_of, opened

MEMBERS = "/settings/members"
LINK = re.compile(r'<code id="link" tabindex="0">([^<]+)</code>')
FORM = re.compile(r'<form[^>]* ?method="post"[^>]* action="([^"]+)"')
LEADS_TO_FORM = re.compile(r'href="([^"]+/(?:new|edit|rotate|delete)(?:\?[^"]*)?)"')
# What a viewer may send: nothing of it changes anything that belongs to the account.
FOR_VIEWERS = {
    "/sign-out",
    "/settings/account",
    "/settings/account/alerts",
    "/settings/account/connect",
    "/settings/doctor",
}


async def invite(owner: PageClient, **fields: str) -> str:
    """The path of the link."""
    await owner.get(MEMBERS)
    answer = await owner.post(MEMBERS, once=owner.once(), **fields)
    assert answer.status_code == 200, answer.text
    found = LINK.search(answer.text)
    assert found is not None
    return found[1].removeprefix(BASE_URL)


async def test_an_invited_person_joins_and_is_signed_in(page_client: PageClient) -> None:
    path = await invite(page_client, role="viewer", email="Ada@example.com")
    listed = await page_client.get(MEMBERS)
    assert "ada@example.com" in listed.text
    assert path.removeprefix("/join/") not in listed.text
    ada = page_client.another()
    shown = await ada.get(path)
    assert 'value="ada@example.com"' in shown.text
    assert await ada.done(path, password=PASSWORD) == "/settings?note=joined"
    page = await ada.get(MEMBERS)
    assert "ada@example.com (you)" in page.text
    assert "Owners invite and remove members." in page.text
    assert (await page_client.another().get(path)).status_code == 404


@pytest.mark.parametrize("mails", [True, False])
async def test_the_page_says_whether_the_invitation_is_mailed(
    harness: Harness, mails: bool
) -> None:
    owner = await opened(harness, replace(RULES, mails=mails)).sign_in()
    form = await owner.get(MEMBERS)
    assert ("and is sent there" in form.text) is mails
    answer = await owner.post(MEMBERS, once=owner.once(), role="viewer", email="ada@example.com")
    assert ("is being sent to <strong>ada@example.com</strong> by e-mail" in answer.text) is mails
    assert LINK.search(answer.text)
    assert ("E-mail not sent yet" in (await owner.get(MEMBERS)).text) is mails


async def test_a_page_that_is_sent_twice_makes_one_invitation(page_client: PageClient) -> None:
    await page_client.get(MEMBERS)
    once, token = page_client.once(), page_client.token()
    for _ in range(2):
        await page_client.post(MEMBERS, once=once, _token=token, role="viewer", email="")
    harness = page_client.harness
    found = await harness.see(harness.service.members.invitations, harness.owner, Page(9))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"email": "ada", "role": "viewer"}, "e-mail address such as"),
        ({"email": "taken@example.com", "role": "viewer"}, str(EmailTaken.__doc__)),
        ({"email": "", "role": "king"}, "Choose one of the roles."),
    ],
)
async def test_what_cannot_be_invited_is_said_beside_the_form(
    page_client: PageClient, fields: dict[str, str], sentence: str
) -> None:
    await member_of(page_client, Role.VIEWER, "taken@example.com")
    await page_client.get(MEMBERS)
    answer = await page_client.post(MEMBERS, once=page_client.once(), **fields)
    assert answer.status_code == 422
    assert sentence in answer.text


@pytest.mark.parametrize(
    ("email", "password", "sentence"),
    [
        ("ada", PASSWORD, "e-mail address such as"),
        ("ada@example.com", "short", "10 to 200 characters"),
        ("taken@example.com", PASSWORD, str(EmailTaken.__doc__)),
    ],
)
async def test_what_cannot_join_is_said_beside_the_form(
    page_client: PageClient, email: str, password: str, sentence: str
) -> None:
    await member_of(page_client, Role.VIEWER, "taken@example.com")
    path = await invite(page_client, role="developer", email="")
    ada = page_client.another()
    await ada.get(path)
    answer = await ada.post(path, email=email, password=password)
    assert answer.status_code == 422
    assert sentence in answer.text
    assert await ada.done(path, email="ada@example.com", password=PASSWORD)


async def test_a_revoked_invitation_has_ended(page_client: PageClient) -> None:
    path = await invite(page_client, role="viewer", email="")
    harness = page_client.harness
    [made] = await harness.see(harness.service.members.invitations, harness.owner, Page(9))
    await page_client.get(MEMBERS)
    revoke = f"/settings/invitations/{made.id}/revoke"
    assert await page_client.done(revoke) == f"{MEMBERS}?note=invitation-revoked"
    answer = await page_client.another().get(path)
    assert answer.status_code == 404
    assert "This invitation has ended" in answer.text


async def test_an_invitation_is_sent_again_and_its_first_link_ends(page_client: PageClient) -> None:
    path = await invite(page_client, role="viewer", email="ada@example.com")
    harness = page_client.harness
    [made] = await harness.see(harness.service.members.invitations, harness.owner, Page(9))
    listed = (await page_client.get(MEMBERS)).text
    resend = f"/settings/invitations/{made.id}/resend"
    assert f'action="{resend}"' in listed
    fields = {"once": page_client.once(), "_token": page_client.token()}
    first, second = [(await page_client.post(resend, **fields)).text for _ in range(2)]
    found = LINK.search(first)
    assert found is not None
    assert "The link of the earlier invitation has stopped working." in first
    # The form that is sent twice makes one link.
    assert LINK.findall(second) == [found[1]]
    again = found[1].removeprefix(BASE_URL)
    assert again != path
    assert (await page_client.another().get(path)).status_code == 404
    ada = page_client.another()
    await ada.get(again)
    assert await ada.done(again, password=PASSWORD) == "/settings?note=joined"
    await page_client.get(MEMBERS)
    assert (await page_client.post(resend, once=page_client.once())).status_code == 404
    trail = (await page_client.get("/settings/audit")).text
    assert "sent the invitation for <em>ada@example.com</em> as <em>viewer</em> again" in trail


@pytest.mark.parametrize("mails", [True, False])
async def test_without_a_mail_server_an_invitation_is_sent_again_as_a_new_link(
    harness: Harness, mails: bool
) -> None:
    owner = await opened(harness, replace(RULES, mails=mails)).sign_in()
    for email in ("ada@example.com", ""):
        await owner.get(MEMBERS)
        await owner.post(MEMBERS, once=owner.once(), role="viewer", email=email)
    page = (await owner.get(MEMBERS)).text
    labels = re.findall(r'aria-label="([^"]+): the invitation for ([^"]+)"', page)
    assert labels == [
        ("New link", "anyone with the link"),
        ("Send again" if mails else "New link", "ada@example.com"),
    ]


async def test_removal_and_demotion_end_the_sessions(page_client: PageClient) -> None:
    member = await member_of(page_client, Role.OWNER, "ada@example.com")
    ada = await page_client.another().sign_in_as("ada@example.com")
    await page_client.get(MEMBERS)
    role = f"{MEMBERS}/{member.id}/role"
    assert await page_client.done(role, role="viewer") == f"{MEMBERS}?note=role-changed"
    assert (await ada.get(MEMBERS)).headers["location"] == "/sign-in?next=/settings/members"
    await ada.sign_in_as("ada@example.com")
    await page_client.get(MEMBERS)
    remove = f"{MEMBERS}/{member.id}/remove"
    assert await page_client.done(remove) == f"{MEMBERS}?note=member-removed"
    assert (await ada.get(MEMBERS)).headers["location"] == "/sign-in?next=/settings/members"
    trail = (await page_client.get("/settings/audit")).text
    assert "<strong>ada@example.com</strong> signed in by <em>password</em>" in trail
    assert "removed the member <em>ada@example.com</em>" in trail


async def test_the_last_owner_is_told_why_it_cannot_be(page_client: PageClient) -> None:
    [owner] = await page_client.harness.see(
        lambda t: t.users.owners(page_client.harness.account.id)
    )
    await page_client.get(MEMBERS)
    for action in ("role", "remove"):
        answer = await page_client.post(f"{MEMBERS}/{owner.id}/{action}", role="viewer")
        assert answer.status_code == 409
        assert "needs an owner" in answer.text
        await page_client.get(MEMBERS)


def _forms() -> list[PageRoute]:
    return [page for page in PAGES if page.post is not None and not page.is_open]


async def test_a_viewer_is_refused_every_form_of_the_pages(sqlite_harness: Harness) -> None:
    """Of every route there is, so that a new one cannot be forgotten."""
    client = opened(sqlite_harness)
    owned = await owned_objects_of(client)
    await member_of(client, Role.VIEWER, "eve@example.com")
    viewer = await client.another().sign_in_as("eve@example.com")
    token, before = viewer.token(), await sqlite_harness.dump()
    assert {page.path for page in _forms()} >= FOR_VIEWERS
    for page in _forms():
        if page.path in FOR_VIEWERS:
            continue
        answer = await viewer.post(owned.path_to(page), _token=token, role="owner", url="x")
        assert answer.status_code == 403, page.path
        assert "As a viewer you may not do that" in answer.text
    assert await sqlite_harness.dump() == before


async def test_a_viewer_opens_no_page_that_leads_to_a_change(sqlite_harness: Harness) -> None:
    client = opened(sqlite_harness)
    owned = await owned_objects_of(client)
    await member_of(client, Role.VIEWER, "eve@example.com")
    viewer = await client.another().sign_in_as("eve@example.com")
    refused = set()
    for page in PAGES:
        if page.get is not None and not page.is_open and not page.path.endswith("/live"):
            answer = await viewer.get(owned.path_to(page))
            assert answer.status_code < 500
            if answer.status_code == 403:
                refused.add(page.path)
    assert refused == {
        "/settings/audit",
        "/settings/audit/export",
        "/settings/inbox",
        "/settings/keys",
        "/settings/projects/{project_id}/edit",
        "/settings/webhooks/new",
        "/settings/webhooks/{webhook_id}/delete",
        "/settings/webhooks/{webhook_id}/edit",
        "/settings/webhooks/{webhook_id}/retries/new",
        "/settings/webhooks/{webhook_id}/rotate",
        "/reveal/{token}",
    }


async def test_a_developer_is_refused_members_and_keys_alone(sqlite_harness: Harness) -> None:
    client = opened(sqlite_harness)
    owned = await owned_objects_of(client)
    await member_of(client, Role.DEVELOPER, "dev@example.com")
    developer = await client.another().sign_in_as("dev@example.com")
    token, refused = developer.token(), set()
    for page in sorted(_forms(), key=lambda page: page.path == "/sign-out"):
        answer = await developer.post(owned.path_to(page), _token=token, role="owner")
        assert answer.status_code < 500, page.path
        if answer.status_code == 403:
            refused.add(page.path)
    assert refused == {
        MEMBERS,
        f"{MEMBERS}/{{member_id}}/role",
        f"{MEMBERS}/{{member_id}}/remove",
        "/settings/invitations/{invitation_id}/resend",
        "/settings/invitations/{invitation_id}/revoke",
        "/settings/keys",
        "/settings/keys/{key_id}/revoke",
    }


async def test_a_viewer_is_shown_no_form_that_is_refused(sqlite_harness: Harness) -> None:
    client = opened(sqlite_harness)
    owned = await owned_objects_of(client)
    await member_of(client, Role.VIEWER, "eve@example.com")
    viewer = await client.another().sign_in_as("eve@example.com")
    owner = await client.another().sign_in()
    shown, of_owner, links = set[str](), set[str](), set[str]()
    for page in PAGES:
        if page.get is None or page.is_open or page.path.endswith("/live"):
            continue
        path = owned.path_to(page)
        answer, everything = await viewer.get(path), await owner.get(path)
        of_owner.update(FORM.findall(everything.text))
        if answer.status_code == 200:
            shown.update(FORM.findall(answer.text))
            links.update(LEADS_TO_FORM.findall(answer.text))
            assert "data-retry=" not in answer.text, page.path
    # A provider to connect with is not configured here.
    assert shown == {*FOR_VIEWERS, "/theme"} - {"/settings/account/connect"}
    assert links == set()
    assert len(of_owner) > len(shown) + 10


async def test_a_viewer_is_told_so_and_sees_no_page_that_is_refused_in_the_menu(
    page_client: PageClient,
) -> None:
    await member_of(page_client, Role.VIEWER, "eve@example.com")
    viewer = await page_client.another().sign_in_as("eve@example.com")
    page = (await viewer.get("/settings/webhooks")).text
    assert "You are a viewer" in page
    assert [name for name in ("keys", "audit", "inbox") if f'href="/settings/{name}"' in page] == []
    assert 'id="retry-dialog"' not in (await viewer.get("/settings/deliveries")).text
    assert 'id="retry-dialog"' in (await page_client.get("/settings/deliveries")).text
