"""Writes docs/screenshots: every settings page in both themes, from a furnished service."""

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from tests.support.browser import opened_browser, opened_context
from tests.support.furnished_pages import Furnished, furnished

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
NARROW = ("webhooks", "webhook-failing", "deliveries", "delivery-failed")
WIDE, TELEPHONE = 1280, 390
MOST_PIXELS = 900
# Small enough to live in the repository, large enough to be read.
SCALE = 0.75


def main() -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        furnished(Path(folder)) as house,
        opened_browser() as browser,
    ):
        for dark in (False, True):
            theme = "dark" if dark else "light"
            with opened_context(browser, width=WIDE, dark=dark, scale=SCALE) as context:
                take_all(context.new_page(), house, theme)
            with opened_context(browser, width=TELEPHONE, dark=dark, scale=SCALE) as context:
                page = context.new_page()
                sign_in(page, house)
                for name in NARROW:
                    take(page, house, name, f"{name}-narrow-{theme}")
    made = sorted(FOLDER.glob("*.png"))
    print(f"{len(made)} pictures, {sum(each.stat().st_size for each in made) / 1e6:.1f} MB")
    return 0


def take_all(page: Page, house: Furnished, theme: str) -> None:
    page.goto(f"{house.base_url}/sign-in")
    shoot(page, f"sign-in-{theme}")
    sign_in(page, house)
    for name in house.paths:
        take(page, house, name, f"{name}-{theme}")
    page.goto(house.base_url + house.paths["webhook-new"])
    page.get_by_label("URL").fill("http://localhost:3000/hook")
    page.locator("#url-check.fault").wait_for()
    shoot(page, f"webhook-new-refused-{theme}")
    page.get_by_label("URL").fill("https://93.184.216.34/new")
    page.get_by_role("button", name="Create endpoint").click()
    page.locator("#secret").wait_for()
    page.evaluate("document.querySelector('#secret').textContent = 'whsec_' + 'x'.repeat(43) + '='")
    shoot(page, f"webhook-secret-{theme}")
    page.get_by_role("link", name="I have stored it").click()
    page.get_by_role("link", name="Delete endpoint").click()
    page.get_by_label("to go on").fill("93.184.216.34")
    page.get_by_role("button", name="Delete endpoint").click()
    page.get_by_text("are deleted").wait_for()


def sign_in(page: Page, house: Furnished) -> None:
    page.goto(house.sign_in_link())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Webhooks").wait_for()


def take(page: Page, house: Furnished, name: str, file: str) -> None:
    page.goto(house.base_url + house.paths[name])
    if "data-live" in page.content():
        page.get_by_text(re.compile("Live: rows|Rows appear")).first.wait_for()
    shoot(page, file)


def shoot(page: Page, file: str) -> None:
    """The whole page, but no more of a long one than shows how it goes on."""
    width = page.viewport_size["width"] if page.viewport_size else WIDE
    height = min(page.evaluate("document.documentElement.scrollHeight"), MOST_PIXELS)
    clip = {"x": 0, "y": 0, "width": width, "height": max(height, 500)}
    page.screenshot(path=FOLDER / f"{file}.png", full_page=True, clip=clip)  # type: ignore[arg-type]  # a dictionary will do


if __name__ == "__main__":
    sys.exit(main())
