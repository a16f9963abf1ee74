"""The head of an endpoint on a phone leaves the screen to the content of the tab."""

import pytest
from playwright.sync_api import Browser, Locator, expect

from tests.support.browser import complaints_of, opened_context, violations
from tests.support.page_tour import sign_in
from tests.support.populated_account import LONG
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(120)

SCREEN = {"width": 390, "height": 844}
MOST_HEAD = SCREEN["height"] // 3
# What each tab is opened for.
CONTENTS = {
    "": ".tiles",
    "/deliveries": "table.rows tbody tr >> nth=0",
    "/secret": "main h2 >> nth=0",
    "/edit": "main [name=url]",
    "/delete": "main [name=host]",
}


def lower_edge(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def middle(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"] + box["height"] / 2


@pytest.mark.parametrize("view", [{}, {"dark": True}, {"javascript": False}])
def test_content_is_on_the_first_screen(
    browser: Browser, site: Populated, view: dict[str, bool]
) -> None:
    with opened_context(browser, **view) as context:
        page = context.new_page()
        page.set_viewport_size(SCREEN)  # type: ignore[arg-type]  # a dictionary will do
        sign_in(page, site)
        # The second one has a name and a URL that are too long.
        for name in ("webhook-failing", "webhook-disabled"):
            for tab, content in CONTENTS.items():
                page.goto(site.base_url + site.paths[name] + tab)
                assert lower_edge(page.locator(".tabs")) < MOST_HEAD, (name, tab)
                assert lower_edge(page.locator(content)) <= SCREEN["height"], (name, tab)
                assert page.evaluate("scrollY") == 0
                health, switch = page.locator("#endpoint-health"), page.get_by_role("switch")
                assert abs(middle(health) - middle(switch)) < 8


def test_what_the_head_cuts_off_is_among_the_details(browser: Browser, site: Populated) -> None:
    with opened_context(browser, width=390) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(site.base_url + site.paths["webhook-disabled"])
        name = page.get_by_role("heading", level=1).inner_text()
        expect(page.locator("dt:text-is('Name') + dd")).to_have_text(name)
        expect(page.locator("#webhook-url")).to_have_text(LONG)
        assert violations(page) == []
        assert said == []
