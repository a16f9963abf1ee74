"""Forms from elsewhere, things of others, bad input, and what every answer carries."""

import httpx2
import pytest

from cuepost.doors.web.app import PAGES
from cuepost.doors.web.visit import PageRoute
from tests.application.world import BASE_URL
from tests.doors.web.belongings import Owned, belongings_of
from tests.doors.web.guest import HERE, Guest


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site", "origin": "https://evil.example"},
        {"sec-fetch-site": "same-site", "origin": "https://other.cuepost.example.com"},
        {"sec-fetch-site": "cross-site", "origin": BASE_URL},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
    ids=str,
)
async def test_a_form_from_elsewhere_is_refused_even_with_the_right_token(
    guest: Guest, headers: dict[str, str]
) -> None:
    guest.sent = headers
    before = await guest.world.dump()
    answer = await guest.post("/settings/projects", name="Planted")
    assert answer.status_code == 403
    assert await guest.world.dump() == before


@pytest.mark.parametrize("token", ["", "wrong", "ä"])
async def test_a_form_without_the_right_token_is_refused(guest: Guest, token: str) -> None:
    before = await guest.world.dump()
    answer = await guest.post("/settings/projects", name="Planted", _token=token)
    assert answer.status_code == 403
    assert await guest.world.dump() == before


async def test_the_token_of_another_session_is_worth_nothing(guest: Guest) -> None:
    other = await guest.another().sign_in()
    answer = await guest.post("/settings/projects", name="Planted", _token=other.token())
    assert answer.status_code == 403


async def test_signing_in_is_guarded_too(stranger: Guest) -> None:
    answer = await stranger.post("/sign-in", email="a@b.c", password="x", _token="")
    assert answer.status_code == 403
    await stranger.get("/sign-in")
    answer = await stranger.post("/sign-in", email="a@b.c", password="x")
    assert answer.status_code == 401


async def test_a_browser_that_says_nothing_of_origins_needs_the_token_alone(guest: Guest) -> None:
    guest.sent = {}
    await guest.done("/settings/projects", name="Mine")


def all_pages() -> list[PageRoute]:
    return list(PAGES)


async def test_every_page_of_another_account_answers_404(stranger: Guest) -> None:
    owned = await belongings_of(stranger)
    intruder = await stranger.sign_in(await stranger.world.new_owner())
    token = intruder.token()
    await intruder.world.do(intruder.world.service.inbox.mine, intruder.world.owner)
    before = await intruder.world.dump()
    found = {}
    for page in all_pages():
        if "{" not in page.path or page.is_open:
            continue
        path = owned.path_to(page)
        if page.get is not None:
            found[f"GET {page.path}"] = (await intruder.get(path)).status_code
        if page.post is not None:
            form = {"host": "hooks.example.com", "sure": "yes", "to": "ready", "answer": "ok"}
            answer = await intruder.post(path, _token=token, **form)
            found[f"POST {page.path}"] = answer.status_code
    assert len(found) > 20
    assert {name: code for name, code in found.items() if code != 404} == {}
    assert await intruder.world.dump() == before


async def test_a_page_of_an_id_that_is_none_answers_404(guest: Guest) -> None:
    nothing = Owned(*(["..%2f"] * 7))  # type: ignore[arg-type]  # no ids on purpose
    for page in all_pages():
        if "{" in page.path and page.get is not None and not page.is_open:
            assert (await guest.get(nothing.path_to(page))).status_code == 404, page.path


async def test_every_page_is_closed_to_whoever_is_not_signed_in(stranger: Guest) -> None:
    owned = await belongings_of(stranger)
    for page in all_pages():
        if not page.is_open and page.get is not None:
            answer = await stranger.get(owned.path_to(page))
            assert answer.status_code == 303, page.path
            assert answer.headers["location"].startswith("/sign-in"), page.path


async def test_a_form_that_cannot_be_read_is_refused(guest: Guest) -> None:
    for body in (b"\xff\xfe", b"name=%ff", b"name=%00", b"a=1&" * 300, b"x" * 300_000):
        answer = await guest.client.post("/settings/projects", content=body, headers=HERE)
        assert answer.status_code == 400, body[:10]


async def test_another_method_is_answered_politely(guest: Guest) -> None:
    assert (await guest.client.delete("/settings/webhooks")).status_code == 405
    assert (await guest.post("/settings/audit")).status_code == 405


def standing(answer: httpx2.Response) -> dict[str, str]:
    names = ("content-security-policy", "cache-control", "referrer-policy")
    return {name: answer.headers[name] for name in names}


async def test_every_answer_carries_the_policy_errors_included(guest: Guest) -> None:
    good, bad = await guest.get("/settings/webhooks"), await guest.get("/inbox/nothing")
    assert standing(good) == standing(bad)
    assert "'unsafe" not in standing(good)["content-security-policy"]
    assert standing(good)["cache-control"] == "no-store"


async def test_without_access_to_webhooks_the_pages_say_so(stranger: Guest) -> None:
    closed = await stranger.world.new_owner(webhooks_enabled=False)
    await stranger.sign_in(closed)
    answer = await stranger.get("/settings/webhooks")
    assert answer.status_code == 403
    assert "ask the operator to open access" in answer.text
    assert (await stranger.get("/settings/projects")).status_code == 200
