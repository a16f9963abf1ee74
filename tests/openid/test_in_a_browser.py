"""A person signs in with the certified provider in a browser, with and without JavaScript."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.openid.conftest import Site
from tests.support.browser import complaints_of, opened_browser, opened_context, violations

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def browser() -> Iterator[Browser]:
    with opened_browser() as opened:
        yield opened


def sign_in_there(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Continue").click()


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
@pytest.mark.parametrize("javascript", [True, False], ids=["javascript", "no javascript"])
def test_a_person_comes_back_signed_in_to_the_wanted_page(
    browser: Browser, site: Site, javascript: bool
) -> None:
    with opened_context(browser, javascript=javascript) as context:
        page = context.new_page()
        page.goto(f"{site.base_url}/settings/projects")
        if javascript:
            assert violations(page) == []
        said = complaints_of(page)
        page.get_by_role("link", name="Sign in with Example ID").click()
        sign_in_there(page, "ada")
        expect(page).to_have_url(f"{site.base_url}/settings/projects")
        page.goto(f"{site.base_url}/settings/account")
        page.get_by_text(f"You sign in with {site.issuer}").wait_for()
        if javascript:
            assert violations(page) == []
        assert said == []


@pytest.mark.parametrize("site", ["sqlite"], indirect=True)
def test_a_member_connects_the_sign_in_and_a_refused_person_reads_why(
    browser: Browser, site: Site
) -> None:
    [link] = re.findall(r"http\S+", site.command("accounts", "sign-in-link", site.account_id))
    with opened_context(browser) as context:
        page = context.new_page()
        page.goto(link)
        page.get_by_role("button", name="Sign in").click()
        page.goto(f"{site.base_url}/settings/account")
        page.get_by_role("button", name="Connect with Example ID").click()
        page.get_by_role("heading", name="Connect with Example ID").wait_for()
        assert violations(page) == []
        page.get_by_role("link", name="Continue at Example ID").click()
        sign_in_there(page, "ada")
        page.get_by_text("From now on you can sign in with the provider.").wait_for()
    with opened_context(browser) as context:
        page = context.new_page()
        page.goto(f"{site.base_url}/sign-in")
        page.get_by_role("link", name="Sign in with Example ID").click()
        sign_in_there(page, "eve")
        page.get_by_role("heading", name="You cannot sign in").wait_for()
        assert violations(page) == []
