"""Writes docs/screenshots: every settings page in both themes and widths, populated and empty."""

import logging
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from playwright.sync_api import Page

from tests.support.browser import opened_browser, opened_context
from tests.support.page_tour import as_newcomer, as_operator, as_stranger, by_forms, sign_in
from tests.support.populated_pages import Populated, populated

FOLDER = Path(__file__).parents[1] / "docs" / "screenshots"
WIDTHS = {"": 1280, "-narrow": 390}
# The narrow screenshots that the repository keeps; with FOLDER, all of them are made.
KEPT_NARROW = ("webhooks", "webhook-failing", "deliveries", "delivery-failed", "events", "keys")
MOST_PIXELS = 900
# Small enough for the repository, large enough to be readable.
SCALE = 0.75


def main() -> int:
    """`screenshots.py [FOLDER]`."""
    folder, everything = (Path(sys.argv[1]), True) if sys.argv[1:] else (FOLDER, False)
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.png"):
        old.unlink()
    # One page is broken on purpose.
    logging.getLogger("cuepost.pages").setLevel(logging.CRITICAL)
    with opened_browser() as browser:
        for theme in ("light", "dark"):
            for suffix, width in WIDTHS.items():
                with (
                    tempfile.TemporaryDirectory() as data,
                    populated(Path(data)) as site,
                    opened_context(
                        browser, width=width, dark=theme == "dark", scale=SCALE
                    ) as context,
                ):
                    page = context.new_page()
                    for name in tour(page, site):
                        if everything or not suffix or name in KEPT_NARROW:
                            shoot(page, folder / f"{name}{suffix}-{theme}.png")
    made = sorted(folder.glob("*.png"))
    print(f"{len(made)} pictures, {sum(each.stat().st_size for each in made) / 1e6:.1f} MB")
    return 0


def tour(page: Page, site: Populated) -> Iterator[str]:
    yield from as_stranger(page, site)
    yield from as_newcomer(page, site)
    page.context.clear_cookies()
    sign_in(page, site)
    for name, path in site.paths.items():
        page.goto(site.base_url + path)
        if "data-live" in page.content():
            page.get_by_text(re.compile("Live: new rows|New rows appear")).first.wait_for()
        yield name
    yield from by_forms(page, site)
    yield from as_operator(page, site)


def shoot(page: Page, file: Path) -> None:
    """The whole page, but only the first part of a long one."""
    width = page.viewport_size["width"] if page.viewport_size else WIDTHS[""]
    height = min(page.evaluate("document.documentElement.scrollHeight"), MOST_PIXELS)
    clip = {"x": 0, "y": 0, "width": width, "height": max(height, 500)}
    page.screenshot(path=file, full_page=True, clip=clip)  # type: ignore[arg-type]  # a dictionary will do


if __name__ == "__main__":
    sys.exit(main())
