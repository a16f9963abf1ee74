"""From a bar of a chart to its deliveries: by mouse, by keyboard and without JavaScript."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.support.browser import complaints_of, opened_context, violations
from tests.support.page_tour import sign_in
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(120)

LIST = re.compile(r"\?since=[^&]+&until=[^&]+$")


def click(bar: Locator) -> None:
    """Above the bar itself: the whole column leads there."""
    bar.locator(".slot-ground").click(position={"x": 2, "y": 2})


def press_enter(bar: Locator) -> None:
    bar.focus()
    expect(bar.locator(".slot-value")).to_be_visible()
    bar.press("Enter")


def count_of(bar: Locator) -> int:
    return sum(int(each) for each in re.findall(r"(\d+) \w+", words_of(bar).rpartition(":")[2]))


def words_of(bar: Locator) -> str:
    return bar.locator(".slot-value").text_content() or ""


@pytest.mark.parametrize("path", ["overview", "webhook-failing"])
@pytest.mark.parametrize("use", [click, press_enter])
@pytest.mark.parametrize("view", [{}, {"width": 390}, {"javascript": False}])
def test_a_bar_leads_to_its_deliveries(
    browser: Browser,
    site: Populated,
    path: str,
    use: Callable[[Locator], None],
    view: dict[str, Any],
) -> None:
    with opened_context(browser, **view) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(site.base_url + site.paths.get(path, "/settings"))
        bar = page.locator("a.slot").nth(1)
        count, address = count_of(bar), bar.get_attribute("href")
        expect(bar).to_have_accessible_name(words_of(bar))
        use(bar)
        page.wait_for_url(LIST)
        assert page.url == f"{site.base_url}{address}"
        expect(page.locator("table.rows tbody tr")).to_have_count(count)
        assert said == []


def test_the_filter_is_the_interval_in_the_zone_of_the_viewer(
    browser: Browser, site: Populated
) -> None:
    """The form shows Berlin's time, and leads back to the same instants."""
    with opened_context(browser) as context:
        page = context.new_page()
        sign_in(page, site)
        page.goto(f"{site.base_url}/settings")
        page.get_by_text("Values as a table").first.click()
        first = page.locator("figure tbody a").first
        shown = first.locator("time").inner_text()
        first.click()
        page.wait_for_url(LIST)
        expect(page.locator(".chip time").first).to_have_text(shown)
        address, listed = page.url, rows(page)
        page.get_by_text("More filters").click()
        page.get_by_role("button", name="Apply").click()
        page.wait_for_url("**status=**")
        assert address.partition("?")[2] in page.url
        assert rows(page) == listed


def rows(page: Page) -> list[str | None]:
    return [each.get_attribute("id") for each in page.locator("table.rows tbody tr").all()]


@pytest.mark.parametrize("dark", [False, True])
def test_a_bar_with_the_focus_has_no_violation(
    browser: Browser, site: Populated, dark: bool
) -> None:
    with opened_context(browser, width=390, dark=dark) as context:
        page = context.new_page()
        sign_in(page, site)
        for span in ("24h", "30d"):
            page.goto(f"{site.base_url}/settings?range={span}")
            page.locator("a.slot").first.focus()
            assert violations(page) == []
