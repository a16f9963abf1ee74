"""Deletes old rows: partitions of whole days on PostgreSQL, chunks on SQLite, and nothing live.

A delivery that is being sent again keeps its partition, or its own rows on SQLite, until it ends.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cuepost.adapters.storage import partitions
from cuepost.adapters.storage.records.keys import OWNED, quoted
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES
from cuepost.domain.ids import lowest_at
from cuepost.ports.retention import Expiring

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


class Rule:
    """Which rows are old: those from before `:instant`, or with an id below `:lowest`.

    `by_account` is set if the key that finds them begins with the account.
    """

    def __init__(self, table: str, is_old: str, *, by_account: bool = False) -> None:
        self.by_account = by_account
        key = quoted(OWNED[table])
        of_account = "account_id = :account_id AND " if by_account else ""
        chosen = f"SELECT {key} FROM {table} WHERE {of_account}{is_old} LIMIT :most"
        deletion = f"DELETE FROM {table} WHERE {of_account}({key}) IN"
        self.deletion = Sql(
            # Without WITH, because SQLite's driver reports no row count for it.
            sqlite=f"{deletion} ({chosen})",
            # Locked rows are skipped: another process is deleting them.
            postgresql=f"""
                WITH chosen AS ({chosen} FOR UPDATE SKIP LOCKED)
                {deletion} (SELECT {key} FROM chosen)
                """,
        )
        self.any = Sql(f"SELECT 1 FROM {table} WHERE {is_old} LIMIT 1")
        if by_account:
            its = f"SELECT 1 FROM {table} WHERE account_id = accounts.id AND {is_old}"
            self.any = Sql(f"SELECT id FROM accounts WHERE EXISTS ({its}) LIMIT 1")


RULES: Mapping[Expiring, Rule] = {
    Expiring.COUNTS: Rule("delivery_counts", f"minutes = {HOUR_MINUTES} AND since < :instant"),
    Expiring.SHORT_COUNTS: Rule(
        "delivery_counts", f"minutes = {FINE_MINUTES} AND since < :instant"
    ),
    Expiring.ALERTS: Rule("alerts", "finished_at < :instant AND announced = changes"),
    Expiring.BULK_RETRIES: Rule(
        "bulk_retries",
        "bulk_retries.id < :lowest AND bulk_retries.finished_at IS NOT NULL",
        by_account=True,
    ),
    Expiring.REPORTS: Rule("reports", "created_at < :instant"),
    Expiring.IDEMPOTENCY_KEYS: Rule("idempotency_keys", "created_at < :instant"),
    Expiring.AUDIT_TRAIL: Rule("audit_entries", "id < :lowest"),
    Expiring.SECRETS: Rule("signing_secrets", "expires_at <= :instant"),
    Expiring.SESSIONS: Rule("sessions", "expires_at <= :instant"),
    Expiring.SIGN_IN_LINKS: Rule("sign_in_links", "expires_at <= :instant"),
    Expiring.INVITATIONS: Rule("invitations", "expires_at <= :instant"),
    Expiring.INVITATION_MAILS: Rule("invitation_mails", "expires_at <= :instant"),
    Expiring.PORTAL_LINKS: Rule("portal_links", "ends_at <= :instant"),
    Expiring.SECRET_REVEALS: Rule("secret_reveals", "expires_at <= :instant"),
    Expiring.INBOX_MESSAGES: Rule("inbox_messages", "id < :lowest"),
}


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
# One index step for each account, however long the queue is.
_ACCOUNT_WITH_LIVE = Sql(
    """
    SELECT id FROM accounts WHERE EXISTS (
        SELECT 1 FROM queue
        WHERE queue.account = accounts.number AND queue.id >= :lowest AND queue.id < :following
    )
    LIMIT 1
    """
)
_DELETED_ENDPOINT = Sql("SELECT id FROM endpoints WHERE deleted_at IS NOT NULL LIMIT 1")
_TAKE_TURN = Sql(postgresql="SELECT pg_try_advisory_xact_lock(:lock::bigint)")


class RetentionRecords:
    def __init__(self, session: StoreSession) -> None:
        self._session = session

    async def any_before(self, what: Expiring, instant: datetime) -> bool:
        if what is not Expiring.HISTORY:
            return bool(await self._some(RULES[what].any, instant))
        if self._session.dialect == "postgresql":
            return await self._day_to_drop(instant) is not None
        return bool(await self._some(_ACCOUNT_WITH_HISTORY, instant))

    async def delete_before(self, what: Expiring, instant: datetime, rows: int) -> bool:
        if what is not Expiring.HISTORY:
            return await self._delete_old(RULES[what], instant, rows)
        if self._session.dialect == "postgresql":
            return await self._drop_day(instant)
        return await self._delete_history(instant, rows)

    async def lacks_days(self, now: datetime) -> bool:
        if self._session.dialect != "postgresql":
            return False
        return any(partitions.missing(frozenset(await self._partitions()), now))

    async def has_deleted_endpoints(self) -> bool:
        return bool(await self._session.fetch(_DELETED_ENDPOINT))

    async def has_free_pages(self) -> bool:
        if self._session.dialect != "sqlite":
            return False
        [(auto_vacuum, free, size)] = await self._session.fetch(_FILE)
        return bool(auto_vacuum == INCREMENTAL and free > size * SPARE_SHARE)

    async def return_free_pages(self, pages: int) -> bool:
        [(_, _, before)] = await self._session.fetch(_FILE)
        # The driver runs only one step of this statement, which returns one page.
        for _ in range(pages):
            await self._session.execute(_GIVE_PAGE_BACK)
        [(_, _, after)] = await self._session.fetch(_FILE)
        return bool(after < before)

    async def _delete_old(self, rule: Rule, instant: datetime, rows: int) -> bool:
        account_id = None
        if rule.by_account:
            found = await self._some(rule.any, instant)
            if not found:
                return False
            [(account_id,)] = found
        gone = await self._session.offloaded.execute(
            rule.deletion,
            account_id=account_id,
            instant=instant,
            lowest=lowest_at(instant),
            most=rows,
        )
        return gone > 0 if rule.by_account else gone == rows

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

    async def _drop_day(self, instant: datetime) -> bool:
        [(is_mine,)] = await self._session.fetch(_TAKE_TURN, lock=partitions.LOCK)
        if not is_mine:
            return False
        # `fetch`, because `execute` would parse a number of rows, which these do not return.
        for statement in partitions.locking():
            await self._session.fetch(Sql(postgresql=statement))
        # Read under the lock: from here on no delivery of that day can be sent again.
        day = await self._day_to_drop(instant)
        if day is not None:
            await self._session.fetch(Sql(postgresql=partitions.dropping(day)))
        return day is not None

    async def _day_to_drop(self, instant: datetime) -> datetime | None:
        for day in partitions.ended_before(await self._partitions(), instant):
            bounds = {"lowest": lowest_at(day), "following": lowest_at(day + partitions.DAY)}
            if not await self._session.fetch(_ACCOUNT_WITH_LIVE, **bounds):
                return day
        return None

    async def _partitions(self) -> list[str]:
        found = await self._session.fetch(partitions.EXISTING_NAMES, names=partitions.PARTITIONED)
        return [name for (name,) in found]

    async def _some(self, statement: Sql, instant: datetime) -> Sequence[Any]:
        return await self._session.offloaded.fetch(
            statement, instant=instant, lowest=lowest_at(instant)
        )
