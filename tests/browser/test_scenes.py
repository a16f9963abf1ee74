"""Scenes of daily use, each in both themes and widths: one browser context for each combination."""

import json
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import complaints_of, opened_context
from tests.support.page_tour import sign_in
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(300)

VARIANTS = [(1280, False), (1280, True), (390, False), (390, True)]
ABSOLUTE = re.compile(r"\d+ \w+ 20\d\d, [\d:]{8} \(20[\d-]{8} [\d:]{8} UTC\)")
RELATIVE = re.compile(r"just now|now|\d+ (s|min|h|d) ago")
Scene = Callable[[Page, Populated], None]


def go(page: Page, site: Populated, path: str) -> None:
    page.goto(site.base_url + path)


def find(page: Page, site: Populated, text: str) -> None:
    go(page, site, "/settings/deliveries")
    page.keyboard.press("/")
    page.keyboard.type(text)
    page.keyboard.press("Enter")


def last_part(path: str) -> str:
    return path.rpartition("/")[2]


def times_are_relative_and_absolute_on_hover(page: Page, site: Populated) -> None:
    for name in ("deliveries", "events", "audit", "projects"):
        go(page, site, site.paths[name])
        shown = page.locator("td time[data-relative]")
        assert shown.count() > 0, name
        for place in range(min(shown.count(), 3)):
            expect(shown.nth(place)).to_have_text(RELATIVE)
            expect(shown.nth(place)).to_have_attribute("title", ABSOLUTE)


def every_field_is_in_the_zone_of_the_times(page: Page, site: Populated) -> None:
    for name in ("deliveries", "events", "bulk-retry", "project-edit", "projects"):
        go(page, site, site.paths[name])
        expect(page.get_by_text("Times are in your time zone, Europe/Berlin.")).to_have_count(1)
        fields = page.locator("input[type=datetime-local]")
        assert fields.count() > 0, name
        expect(page.locator("input[type=datetime-local]:not([data-utc])")).to_have_count(0)
        for place in range(page.get_by_text("(UTC)").count()):
            expect(page.get_by_text("(UTC)").nth(place)).to_be_hidden()


def the_search_takes_ids_names_and_urls(page: Page, site: Populated) -> None:
    event, delivery = site.paths["event"], site.paths["delivery-failed"]
    project = last_part(site.paths["project"])
    of_project = f"/settings/deliveries?project={project}"
    for text, found in (
        (last_part(event), event),
        (last_part(delivery), delivery),
        (project, of_project),
        ("HARBOUR at dawn, tr", of_project),
    ):
        find(page, site, text)
        page.wait_for_url(lambda url, found=found: url.startswith(site.base_url + found))  # type: ignore[misc]
    find(page, site, "example.com")
    expect(page.get_by_role("heading", name="Deliveries of")).to_be_visible()
    expect(page.locator("main li.line a").first).to_be_visible()
    find(page, site, "no such thing")
    expect(page.get_by_text("no project has a name that begins with it")).to_be_visible()


def a_preset_becomes_a_chip_that_can_be_removed(page: Page, site: Populated) -> None:
    go(page, site, "/settings/deliveries")
    page.get_by_role("link", name="Failed", exact=True).click()
    page.wait_for_url("**status=failed**")
    chip = page.locator(".chip")
    expect(chip).to_have_count(1)
    expect(chip).to_contain_text("failed")
    expect(page.get_by_role("link", name="Failed", exact=True)).to_have_attribute(
        "aria-current", "true"
    )
    statuses = page.locator("table.rows tbody td[data-label=Status]")
    assert {re.split(r"\s{2,}|\n", each.strip())[0] for each in statuses.all_inner_texts()} == {
        "failed"
    }
    chip.get_by_role("link").click()
    page.wait_for_url(re.compile(r"/settings/deliveries$"))
    expect(page.locator(".chip")).to_have_count(0)


def keys_reach_rows_search_retry_and_help(page: Page, site: Populated) -> None:
    go(page, site, "/settings/deliveries?status=failed")
    page.keyboard.press("j")
    expect(page.locator("table.rows tbody tr").first.locator("a").first).to_be_focused()
    page.keyboard.press("r")
    retry = page.get_by_role("dialog", name="Retry this delivery?")
    expect(retry).to_be_visible()
    page.keyboard.press("Escape")
    expect(retry).to_be_hidden()
    page.keyboard.press("?")
    help_dialog = page.get_by_role("dialog", name="Keyboard shortcuts")
    expect(help_dialog).to_be_visible()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def a_body_is_formatted_and_its_raw_form_is_what_was_sent(page: Page, site: Populated) -> None:
    go(page, site, site.paths["delivery-delivered"])
    formatted = page.locator("pre:has(.json-key)").first
    raw = page.locator("#event-body")
    expect(formatted).to_be_visible()
    expect(raw).to_be_hidden()
    page.get_by_text("Raw, exactly as it is signed and sent").click()
    expect(raw).to_be_visible()
    sent = raw.text_content() or ""
    assert "\n" not in sent
    assert json.loads(formatted.text_content() or "") == json.loads(sent)
    page.locator("[data-copy=event-body]").click()
    assert page.evaluate("navigator.clipboard.readText()") == sent


def the_content_is_few_steps_away(page: Page, site: Populated) -> None:
    """On a phone the navigation is folded; in a wide window a link skips it."""
    go(page, site, "/settings/keys")
    inside = "document.querySelector('main').contains(document.activeElement)"
    if page.viewport_size == {"width": 1280, "height": 900}:
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
    steps = 0
    while not page.evaluate(inside):
        page.keyboard.press("Tab")
        steps += 1
        assert steps < 10
    assert page.locator("h1").bounding_box()["y"] < 400  # type: ignore[index]


def a_finished_bulk_retry_has_nothing_to_cancel(page: Page, site: Populated) -> None:
    go(page, site, site.paths["bulk-retry-finished"])
    expect(page.get_by_role("status").filter(has_text="8 of 10 retried")).to_be_visible()
    expect(page.get_by_role("button", name="Cancel the rest")).to_have_count(0)
    expect(page.get_by_role("link", name="View failed deliveries")).to_be_visible()


def an_unknown_page_is_html_for_a_browser_and_a_problem_for_a_program(
    page: Page, site: Populated
) -> None:
    path = f"{site.base_url}/settings/nothing"
    answer = page.goto(path)
    assert answer is not None
    assert (answer.status, answer.headers["content-type"]) == (404, "text/html; charset=utf-8")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    program = page.request.get(path, headers={"Accept": "*/*"})
    assert program.status == 404
    assert program.headers["content-type"] == "application/problem+json"


def the_audit_trail_consists_of_sentences_with_links(page: Page, site: Populated) -> None:
    go(page, site, "/settings/audit")
    sentences = page.locator("table.rows tbody td[data-label=What]")
    for text in sentences.all_inner_texts():
        assert re.match(r"\S.* \S+", text), text
        assert not re.search(r"\b[0-9a-f]{8}-[0-9a-f]{4}-", text), text
    sentences.locator("a").first.click()
    # The link of a delivery is a search, which leads on to its page.
    page.wait_for_url(lambda url: "/settings/audit" not in url)
    expect(page.locator("h1")).to_be_visible()


def the_icon_of_the_page_exists(page: Page, site: Populated) -> None:
    go(page, site, "/settings")
    for icon in page.locator("link[rel=icon]").all():
        answer = page.request.get(site.base_url + (icon.get_attribute("href") or ""))
        assert answer.status == 200
        assert answer.headers["content-type"].startswith("image/")


SCENES: tuple[Scene, ...] = (
    times_are_relative_and_absolute_on_hover,
    every_field_is_in_the_zone_of_the_times,
    the_search_takes_ids_names_and_urls,
    a_preset_becomes_a_chip_that_can_be_removed,
    keys_reach_rows_search_retry_and_help,
    a_body_is_formatted_and_its_raw_form_is_what_was_sent,
    the_content_is_few_steps_away,
    a_finished_bulk_retry_has_nothing_to_cancel,
    the_audit_trail_consists_of_sentences_with_links,
    the_icon_of_the_page_exists,
)


@pytest.mark.parametrize(("width", "dark"), VARIANTS)
def test_scenes_of_daily_use(browser: Browser, site: Populated, width: int, dark: bool) -> None:
    with opened_context(browser, width=width, dark=dark) as context:
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        page = context.new_page()
        sign_in(page, site)
        said = complaints_of(page)
        for scene in SCENES:
            scene(page, site)
            assert said == [], scene
        # The console mentions the 404.
        an_unknown_page_is_html_for_a_browser_and_a_problem_for_a_program(page, site)
