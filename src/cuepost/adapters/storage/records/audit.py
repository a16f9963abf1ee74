"""The audit trail; it is read by its key alone, however it is filtered."""

from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.audit import Action, AuditEntry
from cuepost.domain.instants import instant_of, lowest_at
from cuepost.ports.records import EVERY_ENTRY, AuditFilter, Page

_ENTRIES = """
    SELECT id, action, actor, interface, address, subject, details, actor_name FROM audit_entries
    """
_IDS = "SELECT id FROM audit_entries"
# Both row by row and in this order, so that no planner takes the index by id alone, which has the
# entries of all accounts: it expects few rows where the newest entries are not in its statistics.
_RANGE = (
    "(account_id, id) >= (:account_id, :lowest)",
    "(account_id, id) < (:account_id, :before)",
)
_NEWEST_FIRST = "ORDER BY account_id DESC, id DESC"
_ACTED_BY = "(actor = :actor OR substr(actor, 1, :kind_length) = :kind)"

LOWEST = UUID(int=0)


class AuditRecords(Records):
    async def add(self, entry: AuditEntry) -> None:
        await self._session.insert(
            "audit_entries",
            [
                {
                    "account_id": entry.account_id,
                    "id": entry.id,
                    "action": entry.action,
                    "actor": entry.actor,
                    "interface": entry.interface,
                    "address": entry.address,
                    "subject": entry.subject,
                    "details": dict(entry.details),
                    "actor_name": entry.actor_name,
                }
            ],
        )

    async def page(
        self,
        account_id: UUID,
        page: Page,
        chosen: AuditFilter = EVERY_ENTRY,
        lowest: UUID | None = None,
    ) -> list[AuditEntry]:
        statement, values = page_of(account_id, page, chosen, lowest)
        rows = await self._session.offloaded.fetch(statement, **values)
        return [
            AuditEntry(
                account_id=account_id,
                id=entry_id,
                action=Action(action),
                actor=actor,
                interface=interface,
                address=address,
                subject=subject,
                details=details,
                at=instant_of(entry_id),
                actor_name=actor_name,
            )
            for entry_id, action, actor, interface, address, subject, details, actor_name in rows
        ]

    async def last_of(self, account_id: UUID, page: Page, chosen: AuditFilter) -> UUID | None:
        statement, values = last_of_page(account_id, page, chosen)
        rows = await self._session.offloaded.fetch(statement, **values)
        return rows[0][0] if rows else None


def page_of(
    account_id: UUID, page: Page, chosen: AuditFilter, lowest: UUID | None
) -> tuple[Sql, dict[str, Any]]:
    query = _in_time(account_id, page, chosen, lowest)
    if chosen.actions is not None:
        query.where("action IN :actions", actions=sorted(each.value for each in chosen.actions))
    if chosen.actor is not None:
        kind = f"{chosen.actor}:"
        query.where(_ACTED_BY, actor=chosen.actor, kind=kind, kind_length=len(kind))
    query.values["most"] = page.limit
    return query.of(_ENTRIES, f"{_NEWEST_FIRST} LIMIT :most"), query.values


def last_of_page(account_id: UUID, page: Page, chosen: AuditFilter) -> tuple[Sql, dict[str, Any]]:
    query = _in_time(account_id, page, chosen)
    query.values["skipped"] = page.limit - 1
    return query.of(_IDS, f"{_NEWEST_FIRST} LIMIT 1 OFFSET :skipped"), query.values


def _in_time(
    account_id: UUID, page: Page, chosen: AuditFilter, lowest: UUID | None = None
) -> paging.Chosen:
    """A range of the key of the table; other conditions are compared row by row."""
    starts = [lowest, lowest_at(chosen.since) if chosen.since else None]
    ends = [page.before, lowest_at(chosen.until) if chosen.until else None]
    return paging.Chosen(
        *_RANGE,
        account_id=account_id,
        lowest=max((each for each in starts if each is not None), default=LOWEST),
        before=min((each for each in ends if each is not None), default=paging.HIGHEST),
    )
