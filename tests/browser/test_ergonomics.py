"""What makes the pages quick to use: themes, times, filters, keys, and navigation on a phone."""

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import complaints_of, opened_context, violations
from tests.support.page_tour import sign_in
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(120)

BACKGROUND = "getComputedStyle(document.documentElement).backgroundColor"
LIGHT, DARK = "rgb(251, 251, 253)", "rgb(17, 20, 27)"


def background(page: Page) -> str:
    return str(page.evaluate(BACKGROUND))


def test_the_theme_changes_in_place_and_stays(browser: Browser, site: Populated) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/keys")
        page.get_by_label("Name").fill("kept")
        assert background(page) == LIGHT
        page.get_by_role("button", name="Dark").click()
        expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
        assert background(page) == DARK
        assert page.get_by_label("Name").input_value() == "kept"
        assert violations(page) == []
        page.reload()
        assert background(page) == DARK
        page.emulate_media(color_scheme="dark")
        page.get_by_role("button", name="Light").click()
        expect(page.get_by_role("button", name="Light")).to_have_attribute("aria-pressed", "true")
        assert background(page) == LIGHT
        assert violations(page) == []
        page.get_by_role("button", name="System").click()
        expect(page.locator("html[data-theme]")).to_have_count(0)
        assert background(page) == DARK
        assert said == []


def test_the_theme_changes_without_javascript(browser: Browser, site: Populated) -> None:
    with opened_context(browser, javascript=False) as context:
        page = context.new_page()
        sign_in(page, site)
        here = f"{site.base_url}/settings/deliveries?status=failed"
        page.goto(here)
        page.get_by_role("button", name="Dark").click()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        assert page.url == here


@pytest.mark.parametrize("javascript", [True, False])
def test_navigation_folds_on_a_phone(browser: Browser, site: Populated, javascript: bool) -> None:
    with opened_context(browser, width=390, javascript=javascript) as context:
        page = context.new_page()
        sign_in(page, site)
        link = page.get_by_role("link", name="Audit trail")
        expect(link).to_be_hidden()
        page.locator("details.menu > summary").click()
        expect(link).to_be_visible()
        link.click()
        page.wait_for_url("**/settings/audit")
        page.set_viewport_size({"width": 1280, "height": 900})
        expect(link).to_be_visible()
        expect(page.locator("details.menu")).to_be_hidden()


def test_the_first_link_of_a_page_skips_the_navigation(browser: Browser, site: Populated) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/keys")
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.keyboard.press("Enter")
        assert page.url.endswith("#main")
