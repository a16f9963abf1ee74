"""What keeps a request from being done twice, and what remembers who did it."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.encoding import ENCODINGS
from cuepost.adapters.storage.records.numbers import account_numbers
from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Prepared
from cuepost.adapters.storage.tables import audit_entries, idempotency_keys, reports
from cuepost.adapters.storage.tables.guards import SILENCE_REASON
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.event import SilenceReason
from cuepost.domain.ids import instant_of
from cuepost.ports.records import KeptReport, Page, RememberedAnswer, ReportAnswer, ReportKey

IDEMPOTENCY_LIFE = timedelta(hours=24)
# Answers that were kept before revision 0006 are given to every API key of their account.
EVERY_KEY = UUID(int=0)
_FOUND = Prepared(
    lambda among: sa.select(
        reports.c.account,
        reports.c.report_id,
        reports.c.event_id,
        reports.c.reason,
        reports.c.digest,
    ).where(among((reports.c.account, reports.c.report_id), "accounts", "report_ids"))
)
_SAME_KEY = sa.and_(
    idempotency_keys.c.account_id == sa.bindparam("account"),
    idempotency_keys.c.key == sa.bindparam("its_key"),
)
_OF_CALLER = idempotency_keys.c.key_id == sa.bindparam("key_id")
_OF_EVERYBODY = sa.and_(
    idempotency_keys.c.key_id == EVERY_KEY, idempotency_keys.c.sealed_answer.is_not(None)
)
# Both engines spell it alike.
_CLAIM = Prepared(
    sa.text(
        """
        INSERT INTO idempotency_keys
            (account_id, key_id, "key", fingerprint, sealed_answer, created_at)
        SELECT :account, :key_id, :its_key, :its_fingerprint, NULL, :now
        WHERE NOT EXISTS (
            SELECT 1 FROM idempotency_keys
            WHERE account_id = :account AND key_id = :every_key AND "key" = :its_key
                AND sealed_answer IS NOT NULL AND created_at > :expired
        )
        ON CONFLICT (account_id, key_id, "key") DO UPDATE
        SET fingerprint = excluded.fingerprint, sealed_answer = NULL,
            created_at = excluded.created_at
        WHERE idempotency_keys.created_at <= :expired
        RETURNING account_id
        """
    )
    .bindparams(
        sa.bindparam("account", type_=Id()),
        sa.bindparam("key_id", type_=Id()),
        sa.bindparam("every_key", EVERY_KEY, type_=Id()),
        sa.bindparam("its_key", type_=sa.Text()),
        sa.bindparam("its_fingerprint", type_=sa.LargeBinary()),
        sa.bindparam("now", type_=Instant()),
        sa.bindparam("expired", type_=Instant()),
    )
    .columns(account_id=Id())
)
_REMEMBERED = Prepared(
    sa.select(idempotency_keys.c.fingerprint, idempotency_keys.c.sealed_answer)
    .where(_SAME_KEY, sa.or_(_OF_CALLER, _OF_EVERYBODY))
    .order_by(idempotency_keys.c.created_at.desc())
)
_REMEMBER = Prepared(
    sa.update(idempotency_keys)
    .where(_SAME_KEY, _OF_CALLER)
    .values(sealed_answer=sa.bindparam("answer", type_=sa.LargeBinary))
)
_NOTE_DOWN = Prepared(sa.insert(audit_entries))


_REPORT = ("account", "report_id", "event_id", "reason", "created_at", "digest")


class ReportRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def find(self, keys: Collection[ReportKey]) -> dict[ReportKey, KeptReport]:
        numbers = await account_numbers(self._session, [account_id for account_id, _ in keys])
        known = [key for key in keys if key[0] in numbers]
        rows = await self._session.fetch(
            _FOUND,
            accounts=[numbers[account_id] for account_id, _ in known],
            report_ids=[report_id for _, report_id in known],
        )
        kept = {
            (account, report_id): KeptReport(
                ReportAnswer(report_id, True, event_id, _was_notified(event_id, reason), reason),
                digest,
            )
            for account, report_id, event_id, reason, digest in rows
        }
        found = {key: kept.get((numbers[key[0]], key[1])) for key in known}
        return {key: report for key, report in found.items() if report is not None}

    async def add(self, accepted: Mapping[ReportKey, KeptReport], now: datetime) -> None:
        numbers = await account_numbers(self._session, [account_id for account_id, _ in accepted])
        encoding = ENCODINGS[self._session.dialect]
        created_at, codes = encoding.instant(now), SILENCE_REASON.codes
        rows = [
            (
                numbers[account_id],
                report_id,
                encoding.id_or_none(kept.answer.event_id),
                codes[kept.answer.reason],
                created_at,
                kept.digest,
            )
            for (account_id, report_id), kept in accepted.items()
        ]
        await self._session.insert_encoded(reports, _REPORT, rows)


def _was_notified(event_id: UUID | None, reason: SilenceReason | None) -> bool:
    return event_id is not None and reason is None


class IdempotencyRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(
        self, account_id: UUID, key_id: UUID, key: str, fingerprint: bytes, now: datetime
    ) -> RememberedAnswer | None:
        same = {"account": account_id, "key_id": key_id, "its_key": key}
        expired = now - IDEMPOTENCY_LIFE
        if await self._session.fetch(
            _CLAIM, **same, its_fingerprint=fingerprint, now=now, expired=expired
        ):
            return None
        rows = await self._session.fetch(_REMEMBERED, **same)
        return RememberedAnswer(*rows[0]) if rows else None

    async def remember(
        self, account_id: UUID, key_id: UUID, key: str, sealed_answer: bytes
    ) -> None:
        await self._session.fetch(
            _REMEMBER, account=account_id, key_id=key_id, its_key=key, answer=sealed_answer
        )


class AuditRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, entry: AuditEntry) -> None:
        await self._session.fetch(
            _NOTE_DOWN,
            account_id=entry.account_id,
            id=entry.id,
            action=entry.action,
            actor=entry.actor,
            door=entry.door,
            address=entry.address,
            subject=entry.subject,
            details=dict(entry.details),
        )

    async def page(self, account_id: UUID, page: Page) -> list[AuditEntry]:
        statement = sa.select(audit_entries).where(audit_entries.c.account_id == account_id)
        rows = await self._session.all(newest_first(statement, audit_entries.c.id, page))
        return [
            AuditEntry(
                account_id=row.account_id,
                id=row.id,
                action=Action(row.action),
                actor=row.actor,
                door=row.door,
                address=row.address,
                subject=row.subject,
                details=row.details,
                at=instant_of(row.id),
            )
            for row in rows
        ]
