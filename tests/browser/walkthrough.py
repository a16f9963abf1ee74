"""The life of an endpoint in the pages alone; no step needs a terminal."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.page_actions import PageActions
from tests.support.browser import complaints_of


def walk(actions: PageActions, link: str) -> None:
    said = complaints_of(actions.page)
    _sign_in(actions, link)
    first = _create_endpoint(actions)
    endpoint = actions.page.url
    _send_test(actions)
    delivery = _complete_a_project(actions)
    _retry(actions)
    _rotate(actions, endpoint, first)
    _disable_while_retrying(actions, endpoint, delivery)
    _delete(actions, endpoint)
    assert said == []


def _sign_in(actions: PageActions, link: str) -> None:
    actions.page.goto(link)
    actions.press("button", "Sign in")
    actions.sees("You are signed in.")
    actions.sees("There is no endpoint yet")


def _create_endpoint(actions: PageActions) -> str:
    """The secret that is shown, once."""
    actions.press("link", "Start with the test inbox")
    actions.press("button", "Create endpoint")
    actions.sees("It is shown only once")
    secret = actions.page.locator("#secret").inner_text()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    actions.press("link", "I have stored it")
    actions.sees("Deliveries by outcome")
    assert secret not in actions.page.content()
    return secret


def _send_test(actions: PageActions) -> None:
    if not actions.is_live:
        actions.press("button", "Send test event")
        actions.sees_in_time("Your server acknowledged it with 200")
        return
    watcher = actions.page.context.new_page()
    said = complaints_of(watcher)
    watcher.goto(actions.page.url + "/deliveries")
    watcher.get_by_text("Live: new rows appear automatically.").wait_for()
    assert watcher.locator("tbody tr").count() == 0
    actions.press("button", "Send test event")
    actions.sees("Your server acknowledged it with 200")
    row = watcher.locator("tbody tr", has_text="webhook.test")
    expect(row).to_contain_text("delivered")
    expect(row).to_contain_text("200")
    assert said == []
    watcher.close()


def _complete_a_project(actions: PageActions) -> str:
    """The address of its delivery."""
    actions.press("link", "Projects")
    actions.write("Name", "Trailer")
    actions.press("button", "Create project")
    actions.press("button", "Report completed")
    actions.sees("The project's status has changed.")
    actions.press("link", "Open the delivery")
    actions.sees_in_time("Your server acknowledged it with 200")
    expect(actions.page.get_by_role("heading", level=1)).to_have_text("project.completed")
    return actions.page.url


def _retry(actions: PageActions) -> None:
    actions.press("button", "Retry")
    actions.sees("same event id, three new attempts")
    actions.sees_in_time("of retry 1")
    actions.sees_in_time("Your server acknowledged it with 200")


def _rotate(actions: PageActions, endpoint: str, first: str) -> None:
    page = actions.page
    page.goto(endpoint)
    actions.press("link", "Secret")
    actions.press("link", "Rotate secret")
    actions.sees("every delivery carries two signatures")
    actions.press("button", "Rotate now")
    second = page.locator("#secret").inner_text()
    assert second != first
    actions.press("link", "I have stored it")
    actions.press("link", "Secret")
    actions.sees("The old secret works until")
    expect(page.get_by_role("button", name="Rotate secret")).to_be_disabled()
    actions.sees("Rotation is blocked while the old secret still works.")
    page.goto(f"{endpoint}/rotate")
    actions.sees("Rotation is blocked")
    page.goto(endpoint)
    actions.press("button", "Send test event")
    if actions.is_live:
        # The link is replaced until the outcome is known, and a key pressed then is lost.
        actions.sees("Your server acknowledged it with 200")
        actions.press("link", "Open the delivery")
    actions.sees_in_time("Your server acknowledged it with 200")
    signed = page.locator("#attempt-1-1")
    for secret in (first, second):
        expect(signed).to_contain_text(f"whsec_…{secret.rstrip('=')[-4:]}")
    signatures = signed.locator("pre").first.text_content() or ""
    assert signatures.count("v1,") == 2


def _disable_while_retrying(actions: PageActions, endpoint: str, delivery: str) -> None:
    page = actions.page
    actions.press("link", "Test inbox")
    actions.sees("signature valid")
    actions.choose("Answer the next deliveries with", "500, as for a server error")
    actions.press("button", "Set")
    actions.sees("The answer of the inbox is saved.")
    page.goto(delivery)
    actions.press("button", "Retry")
    actions.sees_in_time("Your server answered 500")
    page.goto(endpoint)
    actions.press("switch", "Enabled")
    actions.sees("The endpoint is disabled")
    page.goto(delivery)
    actions.sees("Cancelled, because the endpoint was disabled.")
    expect(page.get_by_role("button", name="Retry")).to_be_disabled()


def _delete(actions: PageActions, endpoint: str) -> None:
    page = actions.page
    page.goto(endpoint)
    actions.press("link", "Danger zone")
    actions.write("to confirm", "another.example.com")
    actions.press("button", "Delete endpoint")
    actions.sees("nothing was deleted")
    actions.write("to confirm", urlsplit(endpoint).hostname or "")
    actions.press("button", "Delete endpoint")
    actions.sees("The endpoint and its delivery history are deleted.")
    actions.press("link", "Deliveries")
    actions.sees("No deliveries yet")
