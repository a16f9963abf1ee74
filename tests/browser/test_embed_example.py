"""The embedding example, as a newcomer walks through it: sign up, portal, webhook, and back."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import opened_context
from tests.support.service_process import PATIENCE_SECONDS

pytestmark = pytest.mark.timeout(240)

ROOT = Path(__file__).parents[2]
ADDRESS = re.compile(r"Open (http://localhost:\d+) in a browser")


@pytest.fixture
def address() -> Iterator[str]:
    """One command runs the service and the product; SIGINT, as of Ctrl+C, ends both."""
    paths = [str(ROOT / "src"), str(ROOT / "packages/receiver/src")]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "examples/embed/run.py")],
        env=environ,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        found = ADDRESS.search(process.stdout.readline())
        assert found is not None
        yield found[1]
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 0


def test_a_customer_signs_up_adds_an_endpoint_in_the_portal_and_gets_a_webhook(
    browser: Browser, address: str
) -> None:
    with opened_context(browser) as context:
        page = context.new_page()
        page.goto(address)
        page.get_by_label("Company").fill("Harbour Films")
        page.get_by_role("button", name="Sign up").click()
        page.get_by_text("Signed in as Harbour Films").wait_for()
        receiver = str(page.locator("code").text_content())

        page.get_by_role("button", name="Webhook settings").click()
        page.get_by_role("heading", name="Overview").wait_for()
        page.get_by_role("link", name="Webhooks", exact=True).first.click()
        page.locator('a[href$="/settings/webhooks/new"]').first.click()
        page.get_by_label("URL").first.fill(receiver)
        page.get_by_role("button", name=re.compile("Create|Add")).click()
        signing_secret = page.locator("#secret").inner_text()
        page.get_by_role("link", name="Back to localhost").click()

        page.get_by_label("Signing secret").fill(signing_secret)
        page.get_by_role("button", name="Save the secret").click()
        page.get_by_role("button", name="Render a video").click()
        arrived = page.get_by_text(re.compile("^project.completed of "))
        for _ in range(30):
            if arrived.count():
                break
            page.wait_for_timeout(500)
            page.reload()
        expect(arrived).to_have_count(1)

        page.get_by_role("link", name="Webhook settings on this page").click()
        inside = page.frame_locator("iframe")
        inside.get_by_role("link", name="Deliveries").click()
        inside.get_by_text("delivered").first.wait_for()
        inside.get_by_role("link", name="Back to localhost").click()
        page.get_by_text("Signed in as Harbour Films").wait_for()
        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("Company").wait_for()
