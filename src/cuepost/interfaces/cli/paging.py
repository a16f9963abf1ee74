"""Reading everything page by page, so that no statement reads all accounts of a large store."""

from collections.abc import Awaitable, Callable

from cuepost.interfaces.wire_models.paging import Entry
from cuepost.ports.records import Page

AT_ONCE = 500


async def every(read: Callable[[Page], Awaitable[list[Entry]]]) -> list[Entry]:
    """Newest first, in one transaction for each page."""
    found: list[Entry] = []
    wanted: Page | None = Page(AT_ONCE)
    while wanted is not None:
        part = await read(wanted)
        found += part
        wanted = Page(AT_ONCE, part[-1].id) if len(part) == AT_ONCE else None
    return found
