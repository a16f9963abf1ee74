"""Ways to use a page: with a mouse, with the keyboard alone, or without JavaScript."""

from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

from playwright.sync_api import Error, Locator, Page, expect

MOST_TABS = 150
LOADS = 60
SETTLE_MILLIS = 250

Role = Literal["button", "link", "switch"]


@dataclass
class PageActions:
    """The mouse's; `is_live` where pages change by themselves."""

    page: Page
    is_live: bool = True

    def press(self, role: Role, name: str) -> None:
        found = self.page.get_by_role(role, name=name, exact=True)
        menu = self.page.locator("details.menu:not([open]) > summary")
        if found.count() == 0 and menu.is_visible():
            self.use(menu)
        target = found.first
        if role != "link":
            self.use(target)
            return
        # A reload before the next page has arrived would stay on this one.
        with self.page.expect_navigation():
            self.use(target)

    def use(self, target: Locator) -> None:
        target.click()

    def write(self, label: str, text: str) -> None:
        self.page.get_by_label(label, exact=False).first.fill(text)

    def choose(self, label: str, option: str) -> None:
        field = self.page.get_by_label(label)
        value = field.locator("option", has_text=option).get_attribute("value")
        field.select_option(value)

    def sees(self, text: str) -> None:
        expect(self.page.get_by_text(text, exact=False).first).to_be_visible()

    def sees_in_time(self, text: str) -> None:
        """Loads the page again until it says so."""
        for _ in range(LOADS):
            try:
                self.page.get_by_text(text).first.wait_for(timeout=SETTLE_MILLIS)
            except Error:
                # Refused while the page is on its way to another one, which does as well.
                with suppress(Error):
                    self.page.reload()
            else:
                return
        self.sees(text)


class Keyboard(PageActions):
    """Nothing but Tab, Enter, Space and letters."""

    def use(self, target: Locator) -> None:
        self._reach(target)
        self.page.keyboard.press("Enter")

    def write(self, label: str, text: str) -> None:
        self._reach(self.page.get_by_label(label, exact=False).first)
        self.page.keyboard.type(text)

    def choose(self, label: str, option: str) -> None:
        self._reach(self.page.get_by_label(label))
        self.page.keyboard.type(option[:6])

    def _reach(self, target: Locator) -> None:
        target.wait_for()
        for _ in range(MOST_TABS):
            if target.evaluate("element => element === document.activeElement"):
                assert self._focus_is_visible(), "the focus is not visible"
                return
            self.page.keyboard.press("Tab")
        raise AssertionError(f"the keyboard does not reach {target}")

    def _focus_is_visible(self) -> bool:
        return bool(
            self.page.evaluate(
                """() => {
                    const style = getComputedStyle(document.activeElement);
                    return style.outlineStyle !== "none" || style.boxShadow !== "none";
                }"""
            )
        )
