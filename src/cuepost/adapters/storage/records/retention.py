"""Deletes old rows, and nothing live; the engines delete history in different ways."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from cuepost.adapters.storage.records.keys import OWNED
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql, quoted
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES
from cuepost.domain.instants import lowest_at
from cuepost.ports.retention import Expiring


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


_DELETED_ENDPOINT = Sql("SELECT id FROM endpoints WHERE deleted_at IS NOT NULL LIMIT 1")


class RetentionRecords(Records, ABC):
    """What both engines have in common."""

    async def any_before(self, what: Expiring, instant: datetime) -> bool:
        if what is Expiring.HISTORY:
            return await self._any_history(instant)
        return bool(await self._some(RULES[what].any, instant))

    async def delete_before(self, what: Expiring, instant: datetime, rows: int) -> bool:
        if what is Expiring.HISTORY:
            return await self._delete_history(instant, rows)
        return await self._delete_old(RULES[what], instant, rows)

    @abstractmethod
    async def _any_history(self, instant: datetime) -> bool: ...

    @abstractmethod
    async def _delete_history(self, instant: datetime, rows: int) -> bool: ...

    async def lacks_days(self, now: datetime) -> bool:
        """Only PostgreSQL has a partition for each day."""
        return False

    async def has_deleted_endpoints(self) -> bool:
        return bool(await self._session.fetch(_DELETED_ENDPOINT))

    async def has_free_pages(self) -> bool:
        """Only SQLite returns pages to the system by a statement."""
        return False

    async def return_free_pages(self, pages: int) -> bool:
        return False

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

    async def _some(self, statement: Sql, instant: datetime) -> Sequence[Any]:
        return await self._session.offloaded.fetch(
            statement, instant=instant, lowest=lowest_at(instant)
        )
