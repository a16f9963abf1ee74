"""Every part of a page that shows an endpoint's health tells the same, while it is open."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.page_actions import PageActions
from tests.support.browser import opened_context

pytestmark = pytest.mark.timeout(120)


def create_endpoint(actions: PageActions, link: str) -> str:
    """The address of an endpoint that is a test inbox."""
    actions.page.goto(link)
    actions.press("button", "Sign in")
    actions.press("link", "Start with the test inbox")
    actions.press("button", "Create endpoint")
    actions.press("link", "I have stored it")
    actions.sees("Deliveries by outcome")
    return actions.page.url


def answer_with_500(actions: PageActions) -> None:
    actions.press("link", "Test inbox")
    actions.choose("Answer the next deliveries with", "500, as for a server error")
    actions.press("button", "Set")
    actions.sees("The answer of the inbox is saved.")


def expect_state(page: Page, state: str, newest: str) -> None:
    expect(page.locator("#endpoint-health")).to_contain_text(state)
    expect(page.locator("#endpoint-state .line").first).to_contain_text(newest)


def test_a_failing_test_event_changes_the_whole_page(browser: Browser, printed_link: str) -> None:
    with opened_context(browser) as context:
        actions = PageActions(context.new_page())
        page, endpoint = actions.page, create_endpoint(actions, printed_link)
        actions.press("button", "Send test event")
        actions.sees("Your server acknowledged it with 200")
        expect_state(page, "healthy", "delivered")
        expect(page.locator(".tiles")).to_contain_text(re.compile(r"Success rate\s*100 %"))

        answer_with_500(actions)
        page.goto(endpoint)
        actions.press("button", "Send test event")
        actions.sees("Your server answered 500")
        expect_state(page, "degraded", "retrying")
        expect(page.locator("#endpoint-state .lead")).not_to_contain_text("arrived")

        page.reload()
        expect_state(page, "degraded", "retrying")
        page.goto(endpoint.partition("/webhooks")[0])
        expect(page.locator(".attention")).to_contain_text("degraded")


def test_work_that_was_cancelled_after_failures_is_not_healthy(
    browser: Browser, printed_link: str
) -> None:
    with opened_context(browser, width=390, dark=True) as context:
        actions = PageActions(context.new_page())
        page, endpoint = actions.page, create_endpoint(actions, printed_link)
        actions.press("button", "Send test event")
        actions.sees("Your server acknowledged it with 200")
        answer_with_500(actions)
        page.goto(endpoint)
        actions.press("button", "Send test event")
        actions.sees("Your server answered 500")
        actions.press("switch", "Enabled")
        actions.sees("The endpoint is disabled")
        expect_state(page, "disabled", "cancelled")
        actions.press("switch", "Disabled")
        actions.sees("The endpoint is enabled")
        expect_state(page, "degraded", "cancelled")
        expect(page.locator(".tiles")).to_contain_text(re.compile(r"Success rate\s*50 %"))


def test_values_of_a_chart_are_shown_by_the_keyboard(browser: Browser, printed_link: str) -> None:
    with opened_context(browser) as context:
        actions = PageActions(context.new_page())
        page = actions.page
        create_endpoint(actions, printed_link)
        actions.press("button", "Send test event")
        actions.sees("Your server acknowledged it with 200")
        slot = page.locator("a.slot").first
        slot.focus()
        expect(slot.locator(".slot-value")).to_be_visible()
        expect(slot.locator(".slot-value")).to_contain_text("1 delivered")
        page.get_by_text("Values as a table").first.click()
        expect(page.locator("figure tbody tr").first).to_contain_text("1")
