"""The whole story of an endpoint, told in the pages alone; no step needs a terminal."""

import re
from urllib.parse import urlsplit

from playwright.sync_api import expect

from tests.browser.hands import Hands
from tests.support.browser import complaints_of


def walk(hands: Hands, link: str) -> None:
    said = complaints_of(hands.page)
    _sign_in(hands, link)
    first = _create_endpoint(hands)
    endpoint = hands.page.url
    _send_test(hands)
    delivery = _complete_a_project(hands)
    _retry(hands)
    _rotate(hands, endpoint, first)
    _disable_while_retrying(hands, endpoint, delivery)
    _delete(hands, endpoint)
    assert said == []


def _sign_in(hands: Hands, link: str) -> None:
    hands.page.goto(link)
    hands.press("button", "Sign in")
    hands.sees("You are signed in.")
    hands.sees("Tell your server when a video is done")


def _create_endpoint(hands: Hands) -> str:
    """The secret that is shown, once."""
    hands.press("link", "Use the test inbox")
    hands.press("button", "Create endpoint")
    hands.sees("It is shown this once")
    secret = hands.page.locator("#secret").inner_text()
    assert re.fullmatch(r"whsec_[A-Za-z0-9+/]{43}=", secret)
    hands.press("link", "I have stored it")
    hands.sees("Deliveries by outcome")
    assert secret not in hands.page.content()
    return secret


def _send_test(hands: Hands) -> None:
    if not hands.is_live:
        hands.press("button", "Send test event")
        hands.sees_in_time("Your server acknowledged it with 200")
        return
    watcher = hands.page.context.new_page()
    said = complaints_of(watcher)
    watcher.goto(hands.page.url + "/deliveries")
    watcher.get_by_text("Live: rows appear by themselves.").wait_for()
    assert watcher.locator("tbody tr").count() == 0
    hands.press("button", "Send test event")
    hands.sees("Your server acknowledged it with 200")
    row = watcher.locator("tbody tr", has_text="webhook.test")
    expect(row).to_contain_text("delivered")
    expect(row).to_contain_text("200")
    assert said == []
    watcher.close()


def _complete_a_project(hands: Hands) -> str:
    """The address of the delivery that tells of it."""
    hands.press("link", "Projects")
    hands.write("Name", "Trailer")
    hands.press("button", "Create project")
    hands.press("button", "Report completed")
    hands.sees("The project has moved on.")
    hands.press("link", "Open the delivery")
    hands.sees_in_time("Your server acknowledged it with 200")
    expect(hands.page.get_by_role("heading", level=1)).to_have_text("project.completed")
    return hands.page.url


def _retry(hands: Hands) -> None:
    hands.press("button", "Retry")
    hands.sees("same event id, three new attempts")
    hands.sees_in_time("of retry 1")
    hands.sees_in_time("Your server acknowledged it with 200")


def _rotate(hands: Hands, endpoint: str, first: str) -> None:
    page = hands.page
    page.goto(endpoint)
    hands.press("link", "Rotate secret")
    hands.sees("every delivery bears two signatures")
    hands.press("button", "Rotate now")
    second = page.locator("#secret").inner_text()
    assert second != first
    hands.press("link", "I have stored it")
    hands.sees("The old secret works until")
    expect(page.get_by_role("button", name="Rotate secret")).to_be_disabled()
    hands.sees("Rotation is blocked while the old secret still works.")
    page.goto(f"{endpoint}/rotate")
    hands.sees("Rotation is blocked")
    page.goto(endpoint)
    hands.press("button", "Send test event")
    if hands.is_live:
        # The link is put there anew until the outcome is known, and a key pressed then is lost.
        hands.sees("Your server acknowledged it with 200")
        hands.press("link", "Open the delivery")
    hands.sees_in_time("Your server acknowledged it with 200")
    signed = page.locator("#attempt-1-1")
    for secret in (first, second):
        expect(signed).to_contain_text(f"whsec_…{secret.rstrip('=')[-4:]}")
    signatures = signed.locator("pre").first.text_content() or ""
    assert signatures.count("v1,") == 2


def _disable_while_retrying(hands: Hands, endpoint: str, delivery: str) -> None:
    page = hands.page
    hands.press("link", "Test inbox")
    hands.sees("signature fits")
    hands.choose("Answer the next deliveries with", "500, as if it were broken")
    hands.press("button", "Set")
    hands.sees("The inbox answers so from now on.")
    page.goto(delivery)
    hands.press("button", "Retry")
    hands.sees_in_time("Your server answered 500")
    page.goto(endpoint)
    hands.press("switch", "Enabled")
    hands.sees("The endpoint is disabled")
    page.goto(delivery)
    hands.sees("Cancelled, because the endpoint was disabled.")
    expect(page.get_by_role("button", name="Retry")).to_be_disabled()


def _delete(hands: Hands, endpoint: str) -> None:
    page = hands.page
    page.goto(endpoint)
    hands.press("link", "Delete endpoint")
    hands.write("to go on", "another.example.com")
    hands.press("button", "Delete endpoint")
    hands.sees("nothing was deleted")
    hands.write("to go on", urlsplit(endpoint).hostname or "")
    hands.press("button", "Delete endpoint")
    hands.sees("The endpoint and its delivery history are deleted.")
    hands.press("link", "Deliveries")
    hands.sees("Nothing was delivered yet")
