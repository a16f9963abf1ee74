"""Searches the audit trail of an account, with a limit on how many entries one search examines."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from uuid import UUID

from cuepost.domain.audit import AuditEntry
from cuepost.ports.records import AuditFilter, Page
from cuepost.ports.store import Transaction

# No index has the entries by action or actor: a search reads this many of the account by their key.
MOST_EXAMINED = 2_000
AT_ONCE = 500
MOST_SEARCHES = 200


@dataclass(frozen=True, slots=True)
class Trail:
    """Entries, newest first, and the id after which to continue, if there may be more.

    That id may be older than the last entry.
    """

    entries: Sequence[AuditEntry]
    further: UUID | None


async def search_audit(
    transaction: Transaction, account_id: UUID, chosen: AuditFilter, page: Page
) -> Trail:
    lowest = None
    if chosen.is_selective:
        examined = Page(MOST_EXAMINED, page.before)
        lowest = await transaction.audit.last_of(account_id, examined, chosen)
    found = await transaction.audit.page(
        account_id, Page(page.limit + 1, page.before), chosen, lowest
    )
    entries = found[: page.limit]
    return Trail(entries, entries[-1].id if len(found) > page.limit else lowest)


async def searches(read: Callable[[Page], Awaitable[Trail]], limit: int) -> AsyncIterator[Trail]:
    """At most `limit` entries, in parts; if the last part has something further, they are cut."""
    before: UUID | None = None
    for _ in range(MOST_SEARCHES):
        found = await read(Page(min(limit, AT_ONCE), before))
        yield found
        limit, before = limit - len(found.entries), found.further
        if not limit or before is None:
            return
