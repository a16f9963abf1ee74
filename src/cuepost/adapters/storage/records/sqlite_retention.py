"""Old history on SQLite: it is deleted in chunks, and free pages are returned to the system.

A delivery that is being sent again keeps its rows until it ends.
"""

from datetime import datetime

from cuepost.adapters.storage.records.retention import RetentionRecords
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.instants import lowest_at

# SQLite reuses free pages; only those beyond this share of the file are returned to the system.
SPARE_SHARE = 0.1
INCREMENTAL = 2
_FILE = Sql(
    sqlite="""
        SELECT auto_vacuum, freelist_count, page_count
        FROM pragma_auto_vacuum, pragma_freelist_count, pragma_page_count
        """
)
_GIVE_PAGE_BACK = Sql(sqlite="PRAGMA incremental_vacuum(1)")


def _ended(account: str) -> str:
    return f"""
        SELECT deliveries.id FROM deliveries
        WHERE deliveries.account = {account} AND deliveries.id < :lowest
        """


def _unneeded(account: str) -> str:
    """Events without a live delivery; deliveries have the millisecond of their event."""
    return f"""
        SELECT events.id FROM events
        WHERE events.account = {account} AND events.id < :lowest AND events.id NOT IN (
            SELECT queue.event_id FROM queue
            WHERE queue.account = {account} AND queue.id < :lowest
        )
        """


# Only SQLite deletes history row by row.
_ACCOUNT_WITH_HISTORY = Sql(
    sqlite=f"""
        SELECT number FROM accounts
        WHERE EXISTS ({_ended("accounts.number")}) OR EXISTS ({_unneeded("accounts.number")})
        LIMIT 1
        """
)
_DELETE_ENDED = tuple(
    Sql(
        sqlite=f"""
            DELETE FROM {table} WHERE account = :account
                AND {column} IN ({_ended(":account")} ORDER BY deliveries.id LIMIT :most)
            """
    )
    for table, column in (("attempts", "delivery_id"), ("deliveries", "id"))
)
_DELETE_UNNEEDED = Sql(
    sqlite=f"""
        DELETE FROM events WHERE account = :account
            AND id IN ({_unneeded(":account")} ORDER BY events.id LIMIT :most)
        """
)


class SqliteRetention(RetentionRecords):
    async def _any_history(self, instant: datetime) -> bool:
        return bool(await self._some(_ACCOUNT_WITH_HISTORY, instant))

    async def _delete_history(self, instant: datetime, rows: int) -> bool:
        found = await self._some(_ACCOUNT_WITH_HISTORY, instant)
        if not found:
            return False
        [(account,)] = found
        old = {"account": account, "lowest": lowest_at(instant), "most": rows}
        session, gone = self._session.offloaded, 0
        for deletion in _DELETE_ENDED:
            gone = await session.execute(deletion, **old)
        if gone < rows:
            await session.execute(_DELETE_UNNEEDED, **old)
        return True

    async def has_free_pages(self) -> bool:
        [(auto_vacuum, free, size)] = await self._session.fetch(_FILE)
        return bool(auto_vacuum == INCREMENTAL and free > size * SPARE_SHARE)

    async def return_free_pages(self, pages: int) -> bool:
        [(_, _, before)] = await self._session.fetch(_FILE)
        # The driver runs only one step of this statement, which returns one page.
        for _ in range(pages):
            await self._session.execute(_GIVE_PAGE_BACK)
        [(_, _, after)] = await self._session.fetch(_FILE)
        return bool(after < before)
