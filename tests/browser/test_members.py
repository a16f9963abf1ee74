"""A person is invited, joins in another browser, may only read, is removed and is signed out."""

import re

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import complaints_of, opened_context, violations
from tests.support.page_tour import sign_in
from tests.support.populated_pages import Populated

pytestmark = pytest.mark.timeout(180)

VARIANTS = [(1280, False), (1280, True), (390, True), (390, False)]
OPEN_ALL = "for (const each of document.querySelectorAll('details.confirm')) each.open = true"
EMAIL, PASSWORD = "eve@example.com", "correct horse battery"


def faults_of(page: Page, name: str) -> dict[str, object]:
    """What axe finds in both themes and widths, and whether the page scrolls sideways."""
    faults: dict[str, object] = {}
    page.evaluate(OPEN_ALL)
    for width, dark in VARIANTS:
        page.emulate_media(color_scheme="dark" if dark else "light")
        page.set_viewport_size({"width": width, "height": 900})
        wide = page.evaluate("document.documentElement.scrollWidth - innerWidth")
        found = violations(page) + ([f"{wide} px too wide"] if wide > 0 else [])
        if found:
            faults[f"{name} {width} {'dark' if dark else 'light'}"] = found
    page.set_viewport_size({"width": 1280, "height": 900})
    page.emulate_media(color_scheme="light")
    return faults


def invited_twice(owner: Page) -> tuple[str, str]:
    """The link of an invitation, and the one that took its place."""
    owner.get_by_role("textbox", name="E-mail").fill(EMAIL)
    owner.get_by_role("radio", name=re.compile("viewer")).check()
    owner.get_by_role("button", name="Create invitation link").click()
    first = owner.locator("#link").text_content()
    owner.get_by_role("link", name="Done").click()
    owner.get_by_role("button", name=f"New link: the invitation for {EMAIL}").click()
    owner.get_by_text("The link of the earlier invitation has stopped working.").wait_for()
    return str(first), str(owner.locator("#link").text_content())


def test_a_viewer_is_invited_reads_changes_nothing_and_is_removed(
    browser: Browser, site: Populated
) -> None:
    with opened_context(browser) as owners, opened_context(browser) as others:
        owner, viewer = owners.new_page(), others.new_page()
        said = complaints_of(owner), complaints_of(viewer)
        sign_in(owner, site, site.empty)
        owner.goto(f"{site.base_url}/settings/members")
        first, second = invited_twice(owner)
        faults = faults_of(owner, "invited")

        viewer.goto(first)
        viewer.get_by_text("This invitation has ended").wait_for()

        viewer.goto(second)
        faults |= faults_of(viewer, "join")
        expect(viewer.get_by_label("E-mail")).to_have_value(EMAIL)
        viewer.get_by_label("Password").fill(PASSWORD)
        viewer.get_by_role("button", name="Join").click()
        viewer.get_by_text("You are a member now").wait_for()

        viewer.goto(f"{site.base_url}/settings/webhooks")
        viewer.get_by_text("You are a viewer").wait_for()
        assert viewer.locator('main a[href$="/new"]:visible').count() == 0
        assert viewer.locator('main form[method="post"]:visible').count() == 0
        faults |= faults_of(viewer, "viewer")
        viewer.goto(f"{site.base_url}/settings/members")
        faults |= faults_of(viewer, "members of a viewer")
        refused = viewer.goto(f"{site.base_url}/settings/webhooks/new")
        assert refused is not None
        assert refused.status == 403
        viewer.get_by_text("As a viewer you may not do that").wait_for()
        faults |= faults_of(viewer, "refused")

        owner.goto(f"{site.base_url}/settings/members")
        faults |= faults_of(owner, "members")
        owner.get_by_role("button", name=f"Remove and sign out {EMAIL}").click()
        owner.get_by_text("is removed and signed out").wait_for()
        viewer.goto(f"{site.base_url}/settings/webhooks")
        viewer.wait_for_url("**/sign-in**")
        assert faults == {}
        messages = [
            each for each in (*said[0], *said[1]) if not re.search("status of 40[34]", each)
        ]
        assert messages == []
