"""Addresses that do not exist: a page for browsers, a problem for programs."""

import pytest

from tests.interfaces.web.page_client import PageClient

BROWSER = {"accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
PROBLEM = "application/problem+json"


@pytest.mark.parametrize("path", ["/settings/unknown", "/settings/webhooks/1/2/3", "/nothing"])
async def test_a_browser_gets_a_page_with_navigation_for_an_unknown_address(
    page_client: PageClient, path: str
) -> None:
    answer = await page_client.get(path, headers=BROWSER)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "<h1>Not found</h1>" in answer.text
    assert '<nav class="side" aria-label="Settings">' in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_without_a_session_the_page_leads_to_the_sign_in(stranger: PageClient) -> None:
    answer = await stranger.get("/settings/unknown", headers=BROWSER)
    assert answer.status_code == 404
    assert '<a href="/sign-in" class="button">' in answer.text
    assert "<nav" not in answer.text


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        ("/settings/unknown", "application/json"),
        ("/settings/unknown", "*/*"),
        ("/nothing", "application/json, text/plain"),
        ("/v1/nothing", BROWSER["accept"]),
        ("/mcp/nothing", BROWSER["accept"]),
    ],
)
async def test_programs_and_the_api_get_a_problem(
    page_client: PageClient, path: str, accept: str
) -> None:
    answer = await page_client.get(path, headers={"accept": accept})
    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)


async def test_a_form_to_an_unknown_address_gets_a_problem(page_client: PageClient) -> None:
    page_client.sent = page_client.sent | BROWSER
    answer = await page_client.post("/settings/unknown")
    assert (answer.status_code, answer.headers["content-type"]) == (404, PROBLEM)


async def test_browsers_find_the_icon_where_they_look_for_it(stranger: PageClient) -> None:
    answer = await stranger.client.get("/favicon.ico")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "image/x-icon")
    assert answer.content.startswith(b"\x00\x00\x01\x00")
    assert 'rel="icon"' in (await stranger.get("/sign-in")).text
