"""Forms from elsewhere, things of others, bad input, and what every answer carries."""

import httpx2
import pytest

from cuepost.interfaces.web.app import PAGES
from cuepost.interfaces.web.page_context import PageRoute
from tests.application.harness import BASE_URL
from tests.interfaces.web.owned_objects import Owned, owned_objects_of
from tests.interfaces.web.page_client import HERE, PageClient


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
    page_client: PageClient, headers: dict[str, str]
) -> None:
    page_client.sent = headers
    before = await page_client.harness.dump()
    answer = await page_client.post("/settings/projects", name="Planted")
    assert answer.status_code == 403
    assert await page_client.harness.dump() == before


@pytest.mark.parametrize("token", ["", "wrong", "ä"])
async def test_a_form_without_the_right_token_is_refused(
    page_client: PageClient, token: str
) -> None:
    before = await page_client.harness.dump()
    answer = await page_client.post("/settings/projects", name="Planted", _token=token)
    assert answer.status_code == 403
    assert await page_client.harness.dump() == before


async def test_the_token_of_another_session_is_worth_nothing(page_client: PageClient) -> None:
    other = await page_client.another().sign_in()
    answer = await page_client.post("/settings/projects", name="Planted", _token=other.token())
    assert answer.status_code == 403


async def test_signing_in_is_guarded_too(stranger: PageClient) -> None:
    answer = await stranger.post("/sign-in", email="a@b.c", password="x", _token="")
    assert answer.status_code == 403
    await stranger.get("/sign-in")
    answer = await stranger.post("/sign-in", email="a@b.c", password="x")
    assert answer.status_code == 401


async def test_a_browser_that_says_nothing_of_origins_needs_the_token_alone(
    page_client: PageClient,
) -> None:
    page_client.sent = {}
    await page_client.done("/settings/projects", name="Mine")


def all_pages() -> list[PageRoute]:
    return list(PAGES)


async def test_every_page_of_another_account_answers_404(stranger: PageClient) -> None:
    owned = await owned_objects_of(stranger)
    intruder = await stranger.sign_in(await stranger.harness.new_owner())
    token = intruder.token()
    await intruder.harness.do(intruder.harness.service.inbox.mine, intruder.harness.owner)
    before = await intruder.harness.dump()
    found = {}
    for page in all_pages():
        if "{" not in page.path or page.is_open:
            continue
        path = owned.path_to(page)
        if page.get is not None:
            found[f"GET {page.path}"] = (await intruder.get(path)).status_code
        if page.post is not None:
            form = {"host": "hooks.example.com", "sure": "yes", "to": "ready", "answer": "ok"}
            form["role"] = "viewer"
            answer = await intruder.post(path, _token=token, **form)
            found[f"POST {page.path}"] = answer.status_code
    assert len(found) > 20
    assert {name: code for name, code in found.items() if code != 404} == {}
    assert await intruder.harness.dump() == before


async def test_a_page_of_an_id_that_is_none_answers_404(page_client: PageClient) -> None:
    nothing = Owned(*(["..%2f"] * 9))  # type: ignore[arg-type]  # no ids on purpose
    for page in all_pages():
        if "{" in page.path and page.get is not None and not page.is_open:
            assert (await page_client.get(nothing.path_to(page))).status_code == 404, page.path


async def test_every_page_is_closed_without_a_session(stranger: PageClient) -> None:
    owned = await owned_objects_of(stranger)
    for page in all_pages():
        if not page.is_open and page.get is not None:
            answer = await stranger.get(owned.path_to(page))
            assert answer.status_code == 303, page.path
            assert answer.headers["location"].startswith("/sign-in"), page.path


async def test_a_form_that_cannot_be_read_is_refused(page_client: PageClient) -> None:
    for body in (b"\xff\xfe", b"name=%ff", b"name=%00", b"a=1&" * 300, b"x" * 300_000):
        answer = await page_client.client.post("/settings/projects", content=body, headers=HERE)
        assert answer.status_code == 400, body[:10]


async def test_another_method_is_answered_with_405(page_client: PageClient) -> None:
    assert (await page_client.client.delete("/settings/webhooks")).status_code == 405
    assert (await page_client.post("/settings/audit")).status_code == 405


def standing(answer: httpx2.Response) -> dict[str, str]:
    names = ("content-security-policy", "cache-control", "referrer-policy")
    return {name: answer.headers[name] for name in names}


async def test_every_answer_carries_the_policy_errors_included(page_client: PageClient) -> None:
    good, bad = await page_client.get("/settings/webhooks"), await page_client.get("/inbox/nothing")
    assert standing(good) == standing(bad)
    assert "'unsafe" not in standing(good)["content-security-policy"]
    assert standing(good)["cache-control"] == "no-store"


async def test_without_access_to_webhooks_the_pages_say_so(stranger: PageClient) -> None:
    closed = await stranger.harness.new_owner(webhooks_enabled=False)
    await stranger.sign_in(closed)
    answer = await stranger.get("/settings/webhooks")
    assert answer.status_code == 403
    assert "ask the operator to open access" in answer.text
    assert (await stranger.get("/settings/projects")).status_code == 200
