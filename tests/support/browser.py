"""A real Chromium: the one of this machine, or one that is installed for the tests."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, sync_playwright

from tests.support.debian import install_packages
from tests.support.missing import missing_component

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE_MILLIS = 15_000
AXE = Path(__file__).parent / "vendor" / "axe-4.14.0.min.js"
# A form that comes back with its faults is no fault of the page.
REFUSED_FORM = "the server responded with a status of 422"
RULES = {
    "type": "tag",
    "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
}
# The themes differ in colours alone.
RULES_OF_COLOUR = {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}

# Put into words over there: what axe has found in order is a megabyte that no one wants to read.
_RUN_AXE = """async runOnly => {
    const resultTypes = ["violations"];
    const found = await axe.run(document, {runOnly, resultTypes, preload: false});
    return found.violations.flatMap(
        each => each.nodes.map(node => `${each.id}: ${node.target} ${node.failureSummary}`));
}"""


def found_chromium() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def prepare() -> None:
    """Before any test, and not within the time of one: Debian's is installed where we may."""
    if found_chromium() is None:
        install_packages("chromium")


def chromium() -> str:
    """Its path; without it the test is not to be had."""
    found = found_chromium()
    if found is None:
        missing_component("there is no Chromium on this machine")
    return found


@contextmanager
def opened_browser() -> Iterator[Browser]:
    path = chromium()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path,
            args=["--no-sandbox", "--disable-dev-shm-usage", "--force-color-profile=srgb"],
        )
        yield browser
        browser.close()


@contextmanager
def opened_context(
    browser: Browser,
    *,
    width: int = 1280,
    dark: bool = False,
    javascript: bool = True,
    scale: float = 1.0,
) -> Iterator[BrowserContext]:
    context = browser.new_context(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if dark else "light",
        java_script_enabled=javascript,
        device_scale_factor=scale,
        timezone_id="Europe/Berlin",
        locale="en-GB",
        reduced_motion="reduce",
    )
    context.set_default_timeout(PATIENCE_MILLIS)
    yield context
    context.close()


def complaints_of(page: Page) -> list[str]:
    """What the console complains about, from here on; a broken policy is told there, too."""
    said: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and REFUSED_FORM not in message.text:
            said.append(message.text)

    page.on("console", hear)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said


def violations(page: Page, *, of_colour: bool = False) -> list[str]:
    """What axe-core finds on the page as it stands, by all rules or by those of colour."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text(encoding="utf-8") + "\n;undefined")
    found: list[str] = page.evaluate(_RUN_AXE, RULES_OF_COLOUR if of_colour else RULES)
    return found


if __name__ == "__main__":
    prepare()
