"""The theme switch as a plain form."""

import pytest

from tests.interfaces.web.page_client import PageClient


def theme_of(page: str) -> str | None:
    opening = page.partition("<head>")[0]
    return opening.partition('data-theme="')[2].partition('"')[0] or None


async def test_a_theme_is_chosen_without_javascript_and_remembered(page_client: PageClient) -> None:
    here = "/settings/deliveries?status=failed"
    assert theme_of((await page_client.get(here)).text) is None
    assert 'name="next" value="/settings/deliveries?status=failed"' in page_client.last
    for theme in ("dark", "light"):
        assert await page_client.done("/theme", theme=theme, next=here) == here
        page = (await page_client.get(here)).text
        assert theme_of(page) == theme
        assert f'<meta name="color-scheme" content="{theme}">' in page
        assert f'value="{theme}" class="small secondary outline" aria-pressed="true"' in page
    await page_client.done("/theme", theme="system", next=here)
    assert theme_of((await page_client.get(here)).text) is None


async def test_the_choice_needs_no_session_and_lasts_a_year(stranger: PageClient) -> None:
    await stranger.get("/sign-in")
    answer = await stranger.post("/theme", theme="dark", next="/sign-in")
    assert "Max-Age=31536000" in answer.headers["set-cookie"]
    assert theme_of((await stranger.get("/sign-in")).text) == "dark"


@pytest.mark.parametrize("wanted", ["//evil.example", "https://evil.example", "/\\evil", ""])
async def test_the_switch_leads_to_no_other_site(page_client: PageClient, wanted: str) -> None:
    assert await page_client.done("/theme", theme="dark", next=wanted) == "/settings"


async def test_an_unknown_theme_is_refused_and_an_invalid_cookie_ignored(
    page_client: PageClient,
) -> None:
    assert (await page_client.post("/theme", theme="neon")).status_code == 404
    page_client.client.cookies.set("cuepost-theme", "neon")
    assert theme_of((await page_client.get("/settings/keys")).text) is None


async def test_a_page_that_answers_a_form_has_no_switch(page_client: PageClient) -> None:
    """Returning to it would be a GET, which shows another page, and a secret is shown once."""
    await page_client.get("/settings/webhooks/new")
    assert "data-themes" in page_client.last
    answer = await page_client.post(
        "/settings/webhooks/new", once=page_client.once(), url="https://hooks.example.com/"
    )
    assert 'id="secret"' in answer.text
    assert "data-themes" not in answer.text
