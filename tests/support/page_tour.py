"""Pages that appear only after an action, reached as a user would reach them."""

from collections.abc import Iterator

from playwright.sync_api import Page

from cuepost.domain.access import Account
from tests.support.populated_pages import Populated

EMPTY = ("webhooks", "deliveries", "events", "projects", "keys", "inbox")
RECEIVER = "https://93.184.216.34/new"


def sign_in(page: Page, site: Populated, account: Account | None = None) -> None:
    page.goto(site.sign_in_link(account))
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url("**/settings?**")


def as_stranger(page: Page, site: Populated) -> Iterator[str]:
    """Pages without a session; each is open when its name is yielded."""
    page.goto(f"{site.base_url}/sign-in")
    yield "sign-in"
    page.get_by_label("E-mail").fill("nobody@example.com")
    page.get_by_label("Password").fill("a wrong password")
    page.get_by_role("button", name="Sign in").click()
    page.locator("p.fault").wait_for()
    yield "sign-in-refused"
    page.goto(site.sign_in_link())
    yield "sign-in-link"
    page.goto(f"{site.base_url}/sign-in/long-ago")
    yield "sign-in-link-expired"
    page.goto(f"{site.base_url}/settings/nothing")
    yield "unknown-page"


def as_newcomer(page: Page, site: Populated) -> Iterator[str]:
    """Of an account in which nothing has happened yet, and of one without access."""
    sign_in(page, site, site.empty)
    yield "overview-empty"
    for name in EMPTY:
        page.goto(f"{site.base_url}/settings/{name}")
        yield f"{name}-empty"
    page.get_by_role("button", name="Sign out").click()
    sign_in(page, site, site.closed)
    yield "overview-no-access"
    page.goto(f"{site.base_url}/settings/webhooks")
    yield "no-access"


def as_operator(page: Page, site: Populated) -> Iterator[str]:
    """The operator's pages; access that is closed is opened again."""
    page.goto(f"{site.base_url}/operator")
    yield "operator-sign-in"
    page.get_by_label("Operator key").fill("cpk_wrong")
    page.get_by_role("button", name="Sign in").click()
    page.locator("p.fault").wait_for()
    yield "operator-sign-in-refused"
    page.get_by_label("Operator key").fill(site.operator_key())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_text("not delivering").wait_for()
    yield "operator-stopped"
    site.start_worker()
    page.goto(f"{site.base_url}/operator?range=24h")
    yield "operator"
    page.goto(f"{site.base_url}/operator/accounts")
    yield "operator-accounts"
    page.goto(f"{site.base_url}/operator/accounts?q=nothing&by=external_id")
    yield "operator-accounts-none"
    page.goto(f"{site.base_url}/operator/accounts/{site.account.id}")
    yield "operator-account"
    page.goto(f"{site.base_url}/operator/accounts/{site.empty.id}")
    page.get_by_text("Close access", exact=True).click()
    page.get_by_role("button", name="Close access now").click()
    page.get_by_text("Access to webhooks is closed").wait_for()
    yield "operator-account-closed"
    page.goto(f"{site.base_url}/operator/accounts/{site.empty.id}")
    page.get_by_text("Open access", exact=True).click()
    page.get_by_role("button", name="Open access now").click()
    page.get_by_text("Access to webhooks is open").wait_for()
    page.get_by_role("link", name="Recent changes of this account").click()
    page.wait_for_url("**/audit")
    yield "operator-account-audit"
    page.goto(f"{site.base_url}/operator/audit")
    yield "operator-audit"
    page.goto(f"{site.base_url}/operator/accounts/nonsense")
    yield "operator-unknown-account"


def by_forms(page: Page, site: Populated) -> Iterator[str]:
    """Of the populated account, which is signed in; what is made is taken away again."""
    yield from _endpoint(page, site)
    yield from _key(page, site)
    page.goto(site.base_url + site.paths["bulk-retry"])
    page.get_by_role("button", name="Count", exact=True).click()
    page.get_by_role("button", name="Count again").wait_for()
    yield "bulk-retry-counted"
    page.goto(site.base_url + site.paths["doctor-of-delivery"])
    page.get_by_label("Secret that your server uses").fill("whsec_" + "x" * 43 + "=")
    page.get_by_role("button", name="Examine").click()
    page.locator("#finding").wait_for()
    yield "doctor-found"


def _endpoint(page: Page, site: Populated) -> Iterator[str]:
    page.goto(site.base_url + site.paths["webhook-new"])
    page.get_by_label("URL").fill("http://localhost:3000/hook")
    page.locator("#url-check.fault").wait_for()
    yield "webhook-new-checked"
    page.get_by_role("button", name="Create endpoint").click()
    page.locator("#url-fault").wait_for()
    yield "webhook-new-refused"
    page.get_by_label("URL").fill(RECEIVER)
    page.get_by_role("button", name="Create endpoint").click()
    page.locator("#secret").wait_for()
    page.evaluate("document.querySelector('#secret').textContent = 'whsec_' + 'x'.repeat(43) + '='")
    yield "webhook-secret"
    page.get_by_role("link", name="I have stored it").click()
    page.get_by_role("button", name="Send test event").click()
    page.locator(".progress-line").wait_for()
    yield "webhook-test-sent"
    page.get_by_role("link", name="Danger zone").click()
    page.get_by_label("to confirm").fill("another.example.com")
    page.get_by_role("button", name="Delete endpoint").click()
    page.locator("#host-fault").wait_for()
    yield "webhook-delete-refused"
    page.get_by_label("to confirm").fill("93.184.216.34")
    page.get_by_role("button", name="Delete endpoint").click()
    page.get_by_text("are deleted").wait_for()


def _key(page: Page, site: Populated) -> Iterator[str]:
    page.goto(site.base_url + site.paths["keys"])
    page.get_by_label("Name").fill("Build server")
    page.get_by_role("button", name="Create key").click()
    page.locator("#scopes-fault").wait_for()
    yield "keys-refused"
    page.get_by_label("projects:read").check()
    page.get_by_role("button", name="Create key").click()
    page.locator("#key").wait_for()
    page.evaluate("document.querySelector('#key').textContent = 'cpk_' + 'x'.repeat(64)")
    yield "key-created"
    page.get_by_role("link", name="I have stored it").click()
    page.get_by_role("button", name="Revoke Build server").first.click()
    page.get_by_text("The key is revoked.").wait_for()
