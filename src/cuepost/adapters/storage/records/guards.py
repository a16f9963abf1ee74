"""Records that keep a request from being executed twice."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.row_writes import inserted
from cuepost.adapters.storage.session import Records, account_numbers
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.event import SilenceReason
from cuepost.ports.records import ReportAnswer, ReportKey, StoredAnswer, StoredReport

IDEMPOTENCY_LIFE = timedelta(hours=24)
# Answers from before revision 0006 are valid for every API key of their account.
EVERY_KEY = UUID(int=0)
_COLUMNS = "reports.account, report_id, event_id, reason AS silence_reason, digest"
_FOUND = Sql(
    # SQLite compares both columns with the affinity of the first, and uses no index for numbers
    # that are compared as text, so numbers come second, and the text is cast explicitly.
    sqlite=f"""
        SELECT {_COLUMNS} FROM reports WHERE (report_id, account) IN (
            SELECT CAST(listed.value AS TEXT), json_extract(:accounts, '$[' || listed.key || ']')
            FROM json_each(:report_ids) AS listed
        )
        """,
    sqlite_of_one=f"""
        SELECT {_COLUMNS} FROM reports WHERE report_id IN :report_ids AND account IN :accounts
        """,
    # The planner cannot use a comparison with a list of one for a join, so it has to look up each
    # row and never scans the whole table, however few rows it expects.
    postgresql=f"""
        SELECT {_COLUMNS}
        FROM reports, unnest(:accounts::integer[], :report_ids::text[]) AS given (account, report)
        WHERE reports.account = ANY (ARRAY[given.account])
            AND report_id = ANY (ARRAY[given.report])
        """,
)
_CLAIM = Sql(
    """
    INSERT INTO idempotency_keys
        (account_id, key_id, "key", fingerprint, sealed_answer, created_at)
    SELECT :account::uuid, :key_id::uuid, :its_key::text, :its_fingerprint::bytea, NULL,
        :now::timestamptz
    WHERE NOT EXISTS (
        SELECT 1 FROM idempotency_keys
        WHERE account_id = :account AND key_id = :every_key AND "key" = :its_key
            AND sealed_answer IS NOT NULL AND created_at > :expired
    )
    ON CONFLICT (account_id, key_id, "key") DO UPDATE
    SET fingerprint = excluded.fingerprint, sealed_answer = NULL,
        created_at = excluded.created_at
    WHERE idempotency_keys.created_at <= :expired
    """
)
_REMEMBERED = Sql(
    """
    SELECT fingerprint, sealed_answer FROM idempotency_keys
    WHERE account_id = :account AND "key" = :its_key
        AND (key_id = :key_id OR key_id = :every_key AND sealed_answer IS NOT NULL)
    ORDER BY created_at DESC
    """
)
_REMEMBER = Sql(
    """
    UPDATE idempotency_keys SET sealed_answer = :answer
    WHERE account_id = :account AND "key" = :its_key AND key_id = :key_id
    """
)
_ADD = inserted("reports", "account", "report_id", "event_id", "reason", "created_at", "digest")


class ReportRecords(Records):
    async def find(self, keys: Collection[ReportKey]) -> dict[ReportKey, StoredReport]:
        numbers = await account_numbers(self._session, [account_id for account_id, _ in keys])
        known = [key for key in keys if key[0] in numbers]
        rows = await self._session.fetch(
            _FOUND,
            accounts=[numbers[account_id] for account_id, _ in known],
            report_ids=[report_id for _, report_id in known],
        )
        kept = {
            (account, report_id): StoredReport(
                ReportAnswer(report_id, True, event_id, _was_notified(event_id, reason), reason),
                digest,
            )
            for account, report_id, event_id, reason, digest in rows
        }
        found = {key: kept.get((numbers[key[0]], key[1])) for key in known}
        return {key: report for key, report in found.items() if report is not None}

    async def add(self, accepted: Mapping[ReportKey, StoredReport], now: datetime) -> None:
        numbers = await account_numbers(self._session, [account_id for account_id, _ in accepted])
        rows = [
            (
                numbers[account_id],
                report_id,
                kept.answer.event_id,
                kept.answer.reason,
                now,
                kept.digest,
            )
            for (account_id, report_id), kept in accepted.items()
        ]
        await self._session.write(_ADD, rows)


def _was_notified(event_id: UUID | None, reason: SilenceReason | None) -> bool:
    return event_id is not None and reason is None


class IdempotencyRecords(Records):
    async def claim(
        self, account_id: UUID, key_id: UUID, key: str, fingerprint: bytes, now: datetime
    ) -> StoredAnswer | None:
        same: Mapping[str, Any] = {
            "account": account_id,
            "key_id": key_id,
            "every_key": EVERY_KEY,
            "its_key": key,
        }
        expired = now - IDEMPOTENCY_LIFE
        if await self._session.execute(
            _CLAIM, **same, its_fingerprint=fingerprint, now=now, expired=expired
        ):
            return None
        rows = await self._session.fetch(_REMEMBERED, **same)
        return StoredAnswer(*rows[0]) if rows else None

    async def remember(
        self, account_id: UUID, key_id: UUID, key: str, sealed_answer: bytes
    ) -> None:
        await self._session.execute(
            _REMEMBER, account=account_id, key_id=key_id, its_key=key, answer=sealed_answer
        )
