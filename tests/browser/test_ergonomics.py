"""What makes the pages quick to use: themes, times, filters, keys, and navigation on a phone."""

import re

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


def test_times_and_fields_are_in_the_zone_of_the_viewer(browser: Browser, site: Populated) -> None:
    """The browser is in Berlin, which is an hour ahead of UTC in January."""
    since = "2026-01-02T03:04"
    with opened_context(browser) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/deliveries?since={since}")
        expect(page.get_by_text("Times are in your time zone, Europe/Berlin.")).to_be_visible()
        expect(page.locator(".chip time")).to_have_text("2 Jan 2026, 04:04:00")
        page.get_by_text("More filters").click()
        field = page.get_by_label("Since")
        expect(field).to_have_value("2026-01-02T04:04")
        expect(page.get_by_text("(UTC)").first).to_be_hidden()
        page.get_by_role("button", name="Apply").click()
        page.wait_for_url("**since=2026-01-02T03%3A04**")
        page.get_by_text("More filters").click()
        page.get_by_label("Until").fill("2036-07-01T12:00")
        page.get_by_role("button", name="Apply").click()
        page.wait_for_url("**until=2036-07-01T10%3A00**")
        shown = page.locator("td time[data-relative]").first
        expect(shown).to_have_text(re.compile(r"\d+ (s|min|h|d) ago"))
        title = shown.get_attribute("title") or ""
        assert re.fullmatch(r"\d+ \w+ 20\d\d, [\d:]{8} \(20[\d-]{8} [\d:]{8} UTC\)", title)
        assert said == []


def test_without_javascript_times_and_fields_are_in_utc(browser: Browser, site: Populated) -> None:
    with opened_context(browser, javascript=False) as context:
        page = context.new_page()
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/deliveries?since=2026-01-02T03:04")
        expect(page.get_by_text("Times are in UTC.")).to_be_visible()
        expect(page.locator(".chip time")).to_have_text("2026-01-02 03:04:00")
        page.get_by_text("More filters").click()
        expect(page.get_by_label("Since")).to_have_value("2026-01-02T03:04")
        page.get_by_role("link", name="Remove the filter Since").click()
        page.wait_for_url("**/settings/deliveries")


def test_a_project_keeps_its_end_of_access_when_only_its_name_changes(
    browser: Browser, site: Populated
) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/projects")
        page.get_by_label("Name").fill("Zone")
        page.get_by_label("Access ends").fill("2036-01-02T03:04")
        page.get_by_role("button", name="Create project").click()
        ends = page.locator("dt:text('Access ends') + dd time").first
        expect(ends).to_have_attribute("title", "2036-01-02 02:04:00 UTC")
        page.get_by_role("link", name="Edit").click()
        expect(page.get_by_label("Access ends")).to_have_value("2036-01-02T03:04")
        page.get_by_label("Name").fill("Zone 2")
        page.get_by_role("button", name="Save").click()
        expect(ends).to_have_attribute("title", "2036-01-02 02:04:00 UTC")


def test_rows_are_reached_searched_and_retried_by_single_keys(
    browser: Browser, site: Populated
) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/deliveries?status=failed")
        rows = page.locator("table.rows tbody tr")
        for key, place in (("j", 0), ("j", 1), ("k", 0), ("k", 0)):
            page.keyboard.press(key)
            expect(rows.nth(place).locator("a").first).to_be_focused()
        page.keyboard.press("r")
        dialog = page.get_by_role("dialog", name="Retry this delivery?")
        expect(dialog).to_contain_text("project.completed")
        assert violations(page) == []
        page.get_by_role("button", name="Keep as it is").click()
        expect(dialog).to_be_hidden()
        page.keyboard.press("/")
        field = page.get_by_role("searchbox")
        expect(field).to_be_focused()
        page.keyboard.type("jkr?/")
        expect(field).to_have_value("jkr?/")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert said == []


def test_a_delivery_is_retried_from_the_list_after_a_confirmation(
    browser: Browser, site: Populated
) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings/deliveries?status=failed")
        page.locator("[data-live-toggle]").click()
        page.keyboard.press("j")
        row = page.locator("tr:focus-within")
        delivery = (row.get_attribute("id") or "").removeprefix("row-")
        page.keyboard.press("r")
        page.get_by_role("button", name="Retry delivery").click()
        page.wait_for_url(f"**/deliveries/{delivery}?note=retried")
        page.keyboard.press("r")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.locator("#announcer")).to_have_text(
            "A delivery can be retried after it has ended."
        )


def test_help_lists_the_shortcuts_and_turns_them_off(browser: Browser, site: Populated) -> None:
    with opened_context(browser, width=390, dark=True) as context:
        page = context.new_page()
        sign_in(page, site)
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
        expect(dialog).to_contain_text("Search deliveries")
        assert violations(page) == []
        dialog.get_by_label("Use single-key shortcuts").uncheck()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        page.reload()
        page.keyboard.press("?")
        expect(dialog).to_be_hidden()
        page.get_by_role("button", name="Keyboard shortcuts").click()
        dialog.get_by_label("Use single-key shortcuts").check()
        dialog.get_by_role("button", name="Close").click()
        page.keyboard.press("/")
        page.wait_for_url("**/settings/deliveries#search")
        expect(page.get_by_role("searchbox")).to_be_focused()


def test_bodies_are_copied_as_they_were_sent(browser: Browser, site: Populated) -> None:
    with opened_context(browser) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        sign_in(page, site)
        page.goto(site.base_url + site.paths["delivery-delivered"])
        page.locator("[data-copy=event-body]").click()
        expect(page.locator("#announcer")).to_have_text("Copied to the clipboard.")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == page.locator("#event-body").text_content()
        assert copied.startswith('{"id":"')
        expect(page.locator("pre .json-key").first).to_have_text('"id"')
