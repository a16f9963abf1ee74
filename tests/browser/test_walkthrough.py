"""From the link that the first start prints to a deleted endpoint, in a real Chromium."""

import pytest
from playwright.sync_api import Browser

from tests.browser.page_actions import Keyboard, PageActions
from tests.browser.walkthrough import walk
from tests.support.browser import opened_context

pytestmark = pytest.mark.timeout(120)


def test_the_whole_walkthrough_with_a_mouse(browser: Browser, printed_link: str) -> None:
    with opened_context(browser) as context:
        walk(PageActions(context.new_page()), printed_link)


def test_the_whole_walkthrough_with_the_keyboard_alone(browser: Browser, printed_link: str) -> None:
    with opened_context(browser) as context:
        walk(Keyboard(context.new_page()), printed_link)


def test_the_whole_walkthrough_without_javascript(browser: Browser, printed_link: str) -> None:
    with opened_context(browser, javascript=False) as context:
        walk(PageActions(context.new_page(), is_live=False), printed_link)


def test_the_whole_walkthrough_on_a_phone(browser: Browser, printed_link: str) -> None:
    with opened_context(browser, width=390, dark=True) as context:
        walk(PageActions(context.new_page()), printed_link)
