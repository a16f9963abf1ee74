"""Every page in both themes and widths: axe-core, the console, its policy and its size."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from itertools import cycle

import pytest
from playwright.sync_api import Browser, Page, Request, Response

from tests.support.browser import complaints_of, opened_context, violations
from tests.support.page_tour import as_newcomer, as_operator, as_stranger, by_forms, sign_in
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(300)

# A width, and whether it is dark. Of two pages, one is checked by all rules when wide and by those
# of colour when narrow, and the other the other way round; `make proof` checks all of both.
IN_TURN = [[(1280, False), (390, True)], [(390, False), (1280, True)]]
ALL = os.environ.get("CUEPOST_TEST_PAGE_VARIANTS") == "all"
VARIANTS = [[*IN_TURN[0], *IN_TURN[1]]] if ALL else IN_TURN
MOST_BYTES = 150_000
# By how much the page is too wide, or a table that has become a list.
TOO_WIDE = """() => Math.max(
    document.documentElement.scrollWidth - innerWidth,
    ...[...document.querySelectorAll(innerWidth < 500 ? ".table-frame" : "none")].map(
        each => each.scrollWidth - each.clientWidth))"""
OPEN_ALL = "for (const each of document.querySelectorAll('details')) each.open = true"
# An error page is answered with its number, which browsers mention.
NUMBER = re.compile(r"the server responded with a status of (401|403|404|410|500)")


def opened(page: Page, site: Populated, paths: Iterable[tuple[str, str]]) -> Iterator[str]:
    """What can be opened in the populated account."""
    sign_in(page, site)
    for name, path in paths:
        page.goto(site.base_url + path)
        yield name


def opened_first(page: Page, site: Populated) -> Iterator[str]:
    """Half of the pages, so that two workers share the longest tour."""
    yield from opened(page, site, list(site.paths.items())[::2])


def opened_second(page: Page, site: Populated) -> Iterator[str]:
    yield from opened(page, site, list(site.paths.items())[1::2])


def after_signing_in(page: Page, site: Populated) -> Iterator[str]:
    sign_in(page, site)
    yield from by_forms(page, site)


def is_document(answer: Response) -> bool:
    return answer.request.resource_type == "document"


def faults_of_policy(answer: Response) -> list[str]:
    policy = answer.headers["content-security-policy"]
    wanted = ("default-src 'none'", "frame-ancestors 'none'")
    missing = [f"no {each}" for each in wanted if each not in policy]
    return [*missing, *(["unsafe"] if "unsafe" in policy else [])]


@pytest.mark.parametrize(
    "tour", [opened_first, opened_second, after_signing_in, as_newcomer, as_operator, as_stranger]
)
def test_no_page_has_a_violation_or_a_complaint_or_anything_inline_or_scrolls_sideways(
    browser: Browser, site: Populated, tour: Callable[[Page, Populated], Iterator[str]]
) -> None:
    """Each page is loaded once and checked in several variants."""
    faults: dict[str, object] = {}
    documents: list[Response] = []
    with opened_context(browser) as context:
        page = context.new_page()
        said = complaints_of(page)
        page.on("response", lambda each: documents.append(each) if is_document(each) else None)
        for name, variants in zip(tour(page, site), cycle(VARIANTS), strict=False):
            inline = page.locator("[style], script:not([src]), style").count()
            if inline:
                faults[f"{name} inline"] = inline
            page.evaluate(OPEN_ALL)
            for width, dark in variants:
                page.emulate_media(color_scheme="dark" if dark else "light")
                page.set_viewport_size({"width": width, "height": 900})
                wide = page.evaluate(TOO_WIDE)
                found = violations(page, of_colour=dark) + (
                    [f"{wide} px too wide"] if wide > 0 else []
                )
                if found:
                    faults[f"{name} {width} {'dark' if dark else 'light'}"] = found
        for each in documents:
            if found := faults_of_policy(each):
                faults[f"{each.url} policy"] = found
    assert documents
    assert faults == {}
    assert [each for each in said if not NUMBER.search(each)] == []


def weight(page: Page, url: str) -> int:
    """Of everything that the page asks for, with the headers."""
    asked: list[Request] = []
    answered: list[Request] = []

    def note(request: Request) -> None:
        # The stream of live rows does not end, and begins sooner on a busy machine.
        if request.resource_type != "eventsource":
            asked.append(request)

    page.on("request", note)
    # It wants functions, and methods of lists are none to it.
    page.on("requestfinished", lambda each: answered.append(each))  # noqa: PLW0108  # see above
    page.goto(url)
    while len(answered) < len(asked):
        page.wait_for_event("requestfinished")
    sizes = [each.sizes() for each in answered]
    return sum(each["responseBodySize"] + each["responseHeadersSize"] for each in sizes)


def test_a_page_with_all_it_needs_weighs_less_than_150_kilobytes(
    browser: Browser, site: Populated
) -> None:
    heaviest: dict[str, int] = {}
    with opened_context(browser) as first:
        signed = first.new_page()
        sign_in(signed, site)
        state = first.storage_state()
    for name in ("webhooks", "webhook", "deliveries", "delivery-failed", "audit", "event-types"):
        context = browser.new_context(storage_state=state)
        heaviest[name] = weight(context.new_page(), site.base_url + site.paths[name])
        context.close()
    assert max(heaviest.values()) < MOST_BYTES, heaviest
    assert min(heaviest.values()) > 10_000, heaviest


def test_what_a_hostile_receiver_answered_does_nothing(browser: Browser, site: Populated) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        said = complaints_of(page)
        sign_in(page, site)
        page.goto(site.base_url + site.paths["delivery-failed"])
        page.evaluate(OPEN_ALL)
        assert page.get_by_text('<script>document.title = "owned"</script>').count() > 0
        assert page.locator("main script, main img, main style, main [onload]").count() == 0
        assert page.title().startswith("Delivery of project.completed")
        assert page.locator("main pre").first.is_visible()
        assert said == []
