"""What keeps a request from being done twice, and what remembers who did it."""

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first, upsert
from cuepost.adapters.storage.statements import Pairs, Prepared
from cuepost.adapters.storage.tables import audit_entries, idempotency_keys, reports
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.event import SilenceReason
from cuepost.domain.ids import instant_of
from cuepost.ports.records import Page, RememberedAnswer, ReportAnswer, ReportKey

IDEMPOTENCY_LIFE = timedelta(hours=24)
_FOUND = Prepared(
    sa.select(
        reports.c.account_id,
        reports.c.report_id,
        reports.c.event_id,
        reports.c.notified,
        reports.c.reason,
    ).where(Pairs((reports.c.account_id, reports.c.report_id), "accounts", "report_ids"))
)
_NOTE_DOWN = Prepared(sa.insert(audit_entries))


class ReportRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def find(self, keys: Collection[ReportKey]) -> dict[ReportKey, ReportAnswer]:
        rows = await self._session.fetch(
            _FOUND,
            accounts=[account_id for account_id, _ in keys],
            report_ids=[report_id for _, report_id in keys],
        )
        return {
            (account_id, report_id): ReportAnswer(
                report_id, True, event_id, notified, SilenceReason(reason) if reason else None
            )
            for account_id, report_id, event_id, notified, reason in rows
        }

    async def add(self, answers: Mapping[ReportKey, ReportAnswer], now: datetime) -> None:
        await self._session.insert(
            reports,
            [
                {
                    "account_id": account_id,
                    "report_id": report_id,
                    "event_id": answer.event_id,
                    "notified": answer.notified,
                    "reason": answer.reason,
                    "created_at": now,
                }
                for (account_id, report_id), answer in answers.items()
            ],
        )


class IdempotencyRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def claim(
        self, account_id: UUID, key: str, fingerprint: bytes, now: datetime
    ) -> RememberedAnswer | None:
        fresh = {"fingerprint": fingerprint, "sealed_answer": None, "created_at": now}
        claimed = await self._session.run(
            upsert(self._session, idempotency_keys)
            .values(account_id=account_id, key=key, **fresh)
            .on_conflict_do_update(
                index_elements=["account_id", "key"],
                set_=fresh,
                where=idempotency_keys.c.created_at <= now - IDEMPOTENCY_LIFE,
            )
        )
        if claimed:
            return None
        row = await first(self._session, sa.select(idempotency_keys).where(_same(account_id, key)))
        return RememberedAnswer(row.fingerprint, row.sealed_answer) if row else None

    async def remember(self, account_id: UUID, key: str, sealed_answer: bytes) -> None:
        await self._session.run(
            sa.update(idempotency_keys)
            .where(_same(account_id, key))
            .values(sealed_answer=sealed_answer)
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


def _same(account_id: UUID, key: str) -> sa.ColumnElement[bool]:
    return sa.and_(idempotency_keys.c.account_id == account_id, idempotency_keys.c.key == key)
