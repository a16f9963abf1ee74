"""Who comes in, how, and for how long."""

import re

import pytest

from cuepost.adapters import argon2_passwords
from tests.application.harness import OPERATOR
from tests.interfaces.web.page_client import PageClient
from tests.support.coming_back import says_when_to_come_back

EMAIL, PASSWORD = "ada@example.com", "correct horse battery"


async def with_password(page_client: PageClient) -> None:
    await page_client.get("/settings/account")
    assert (
        await page_client.done("/settings/account", email=EMAIL, password=PASSWORD)
        == "/settings/account?note=credentials"
    )


async def test_a_request_without_a_session_leads_to_the_sign_in_and_back(
    stranger: PageClient,
) -> None:
    answer = await stranger.get("/settings/deliveries?status=failed")
    assert answer.status_code == 303
    wanted = "/sign-in?next=/settings/deliveries%3Fstatus%3Dfailed"
    assert answer.headers["location"] == wanted
    member = await stranger.another().sign_in()
    await with_password(member)
    await stranger.get(wanted)
    there = await stranger.done(
        "/sign-in", email=EMAIL, password=PASSWORD, next="/settings/deliveries?status=failed"
    )
    assert there == "/settings/deliveries?status=failed"
    assert (await stranger.get(there)).status_code == 200


@pytest.mark.parametrize("wanted", ["https://evil.example", "//evil.example", "/\\evil", "x", ""])
async def test_a_sign_in_leads_nowhere_else(stranger: PageClient, wanted: str) -> None:
    await with_password(await stranger.another().sign_in())
    await stranger.get("/sign-in")
    there = await stranger.done("/sign-in", email=EMAIL, password=PASSWORD, next=wanted)
    assert there == "/settings"


async def test_a_link_is_not_used_up_by_looking_at_it(stranger: PageClient) -> None:
    harness = stranger.harness
    link = await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    for _ in range(2):
        assert (await stranger.get(link.url)).status_code == 200
    await stranger.done(link.url)
    again = stranger.another()
    assert (await again.get(link.url)).status_code == 404


async def test_the_cookie_is_new_at_sign_in_and_for_http_alone(stranger: PageClient) -> None:
    await stranger.get("/sign-in")
    before = dict(stranger.client.cookies)
    await stranger.sign_in()
    after = dict(stranger.client.cookies)
    assert list(before) == ["__Host-cuepost-context"]
    assert set(before.values()).isdisjoint(after.values())
    member = stranger.another()
    harness = member.harness
    link = await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    await member.get(link.url)
    answer = await member.post(link.url)
    [cookie] = [
        each for each in answer.headers.get_list("set-cookie") if each.startswith("__Host-cuepost=")
    ]
    for word in ("HttpOnly", "Secure", "SameSite=lax", "Path=/"):
        assert word in cookie


async def test_a_session_ends_at_sign_out_for_every_holder_of_the_cookie(
    page_client: PageClient,
) -> None:
    cookies = dict(page_client.client.cookies)
    thief = page_client.another()
    thief.client.cookies.update(cookies)
    assert (await thief.get("/settings/webhooks")).status_code == 200
    assert await page_client.done("/sign-out") == "/sign-in"
    assert (await thief.get("/settings/webhooks")).status_code == 303


async def test_a_part_of_a_page_that_asks_after_the_session_ended_leads_the_whole_page_away(
    stranger: PageClient,
) -> None:
    answer = await stranger.get("/settings/deliveries", headers={"hx-request": "true"})
    assert (answer.status_code, answer.text) == (200, "")
    assert answer.headers["hx-redirect"] == "/sign-in"


async def test_a_new_password_ends_the_other_sessions(page_client: PageClient) -> None:
    await with_password(page_client)
    other = page_client.another()
    await other.get("/sign-in")
    await other.done("/sign-in", email=EMAIL, password=PASSWORD)
    assert (await other.get("/settings/webhooks")).status_code == 200
    await page_client.get("/settings/account")
    await page_client.done(
        "/settings/account", email=EMAIL, password="another one", current=PASSWORD
    )
    assert (await page_client.get("/settings/webhooks")).status_code == 200
    assert (await other.get("/settings/webhooks")).status_code == 303


async def test_a_user_without_the_password_sets_another_after_a_link(
    page_client: PageClient,
) -> None:
    await with_password(page_client)
    harness, forgetful = page_client.harness, page_client.another()
    link = await harness.do(harness.service.sign_in.make_link, OPERATOR, harness.account.id)
    await forgetful.get(link.url)
    there = await forgetful.done(link.url)
    assert there == "/settings/account?note=new-password"
    assert 'name="current"' not in (await forgetful.get(there)).text
    await forgetful.done("/settings/account", email=EMAIL, password="not forgotten")
    assert 'name="current"' in (await forgetful.get("/settings/account")).text
    await page_client.get("/sign-in")
    assert await page_client.done("/sign-in", email=EMAIL, password="not forgotten")


async def test_a_sign_in_while_too_many_passwords_are_checked_gets_retry_after(
    stranger: PageClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argon2_passwords, "MOST_AT_WORK", 0)
    await stranger.get("/sign-in")
    answer = await stranger.post("/sign-in", email=EMAIL, password=PASSWORD)
    assert answer.status_code == 503
    assert says_when_to_come_back(answer.headers)


async def test_a_wrong_password_is_refused_and_ten_of_them_make_wait(stranger: PageClient) -> None:
    await with_password(await stranger.another().sign_in())
    await stranger.get("/sign-in")
    codes = [
        (await stranger.post("/sign-in", email=EMAIL, password="wrong")).status_code
        for _ in range(11)
    ]
    assert codes == [401] * 10 + [429]
    last = await stranger.post("/sign-in", email=EMAIL, password=PASSWORD)
    assert last.status_code == 429
    assert says_when_to_come_back(last.headers, 900)
    assert EMAIL in stranger.last
    assert "wrong" not in re.sub("wrong_credentials", "", stranger.last)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"email": "ada", "password": PASSWORD}, "Write an e-mail address"),
        ({"email": EMAIL, "password": "short"}, "Choose 10 to 200 characters"),
    ],
)
async def test_faults_are_said_beside_their_fields(
    page_client: PageClient, fields: dict[str, str], sentence: str
) -> None:
    answer = await page_client.post("/settings/account", **fields)
    assert answer.status_code == 422
    assert sentence in answer.text
    assert 'aria-invalid="true"' in answer.text


async def test_the_current_password_must_be_known(page_client: PageClient) -> None:
    await with_password(page_client)
    await page_client.get("/settings/account")
    answer = await page_client.post(
        "/settings/account", email=EMAIL, password="another long one", current="wrong"
    )
    assert answer.status_code == 422
    assert "The current password is wrong." in answer.text


async def test_a_person_chooses_whether_alerts_come_by_email(page_client: PageClient) -> None:
    email, form = "ada@example.com", "/settings/account/alerts"
    assert form not in (await page_client.get("/settings/account")).text
    await page_client.done("/settings/account", email=email, password="a long password")
    users = page_client.harness.store

    async def wants_alerts() -> bool:
        async with users.transaction() as transaction:
            user = await transaction.users.by_email(email)
        assert user is not None
        return user.wants_alerts

    await page_client.get("/settings/account")
    assert await wants_alerts()
    await page_client.done(form)
    assert not await wants_alerts()
    await page_client.get("/settings/account")
    await page_client.done(form, alerts="on")
    assert await wants_alerts()
