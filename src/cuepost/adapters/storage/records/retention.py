"""Forgetting what is old: whole days on PostgreSQL, chunks on SQLite, nothing that is still live.

A delivery that is being sent again keeps its day, or on SQLite itself, until that has ended.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from cuepost.adapters.storage import partitions
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import (
    accounts,
    attempts,
    audit_entries,
    bulk_retries,
    deliveries,
    endpoints,
    events,
    idempotency_keys,
    inbox_messages,
    queue,
    reports,
    secret_reveals,
    sessions,
    sign_in_links,
    signing_secrets,
)
from cuepost.domain.ids import lowest_at
from cuepost.ports.retention import Passing

Condition = sa.ColumnElement[bool]
# Free pages are used again by what comes next; only what is beyond this share is given back.
SPARE_SHARE = 0.1
INCREMENTAL = 2
_FILE = sa.text(
    "SELECT auto_vacuum, freelist_count, page_count "
    "FROM pragma_auto_vacuum, pragma_freelist_count, pragma_page_count"
)


@dataclass(frozen=True, slots=True)
class Rule:
    """Which rows are old; `by_account` where the key that finds them begins with the account."""

    table: sa.Table
    is_old: Callable[[datetime], Condition]
    by_account: bool = False


RULES: Mapping[Passing, Rule] = {
    Passing.BULK_RETRIES: Rule(
        bulk_retries,
        lambda instant: sa.and_(
            bulk_retries.c.id < lowest_at(instant), bulk_retries.c.finished_at.is_not(None)
        ),
        by_account=True,
    ),
    Passing.REPORTS: Rule(reports, lambda instant: reports.c.created_at < instant),
    Passing.IDEMPOTENCY_KEYS: Rule(
        idempotency_keys, lambda instant: idempotency_keys.c.created_at < instant
    ),
    Passing.AUDIT_TRAIL: Rule(
        audit_entries, lambda instant: audit_entries.c.id < lowest_at(instant)
    ),
    Passing.SECRETS: Rule(signing_secrets, lambda instant: signing_secrets.c.expires_at <= instant),
    Passing.SESSIONS: Rule(sessions, lambda instant: sessions.c.expires_at <= instant),
    Passing.SIGN_IN_LINKS: Rule(
        sign_in_links, lambda instant: sign_in_links.c.expires_at <= instant
    ),
    Passing.SECRET_REVEALS: Rule(
        secret_reveals, lambda instant: secret_reveals.c.expires_at <= instant
    ),
    Passing.INBOX_MESSAGES: Rule(
        inbox_messages, lambda instant: inbox_messages.c.id < lowest_at(instant)
    ),
}


class RetentionRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def any_before(self, what: Passing, instant: datetime) -> bool:
        if what is not Passing.HISTORY:
            return await first(self._session, _oldest(RULES[what], instant)) is not None
        if self._session.dialect == "postgresql":
            return await self._day_to_drop(instant) is not None
        return await first(self._session, _account_with_history(instant)) is not None

    async def forget_before(self, what: Passing, instant: datetime, rows: int) -> bool:
        if what is not Passing.HISTORY:
            return await self._forget(RULES[what], instant, rows)
        if self._session.dialect == "postgresql":
            return await self._drop_day(instant)
        return await self._forget_history(instant, rows)

    async def lacks_days(self, now: datetime) -> bool:
        if self._session.dialect != "postgresql":
            return False
        return any(partitions.missing(frozenset(await self._partitions()), now))

    async def has_deleted_endpoints(self) -> bool:
        deleted = sa.select(endpoints.c.id).where(endpoints.c.deleted_at.is_not(None)).limit(1)
        return await first(self._session, deleted) is not None

    async def has_spare_room(self) -> bool:
        if self._session.dialect != "sqlite":
            return False
        [file] = await self._session.all(_FILE)
        spare = file.freelist_count > file.page_count * SPARE_SHARE
        return bool(file.auto_vacuum == INCREMENTAL and spare)

    async def give_room_back(self, pages: int) -> bool:
        [before] = await self._session.all(_FILE)
        # The driver goes but one step of this statement, and each step gives one page back.
        for _ in range(pages):
            await self._session.run(sa.text("PRAGMA incremental_vacuum(1)"))
        [after] = await self._session.all(_FILE)
        return bool(after.page_count < before.page_count)

    async def _forget(self, rule: Rule, instant: datetime, rows: int) -> bool:
        key = tuple(rule.table.primary_key.columns)
        chosen = sa.select(*key).where(rule.is_old(instant)).limit(rows)
        of_account = sa.true()
        if rule.by_account:
            row = await first(self._session, _oldest(rule, instant))
            if row is None:
                return False
            of_account = rule.table.c.account_id == row.id
        # Others may be at the same rows; whoever has them locked is about to forget them.
        locked = chosen.where(of_account).with_for_update(skip_locked=True).cte("chosen")
        gone = await self._session.unhurried.run(
            sa.delete(rule.table).where(of_account, sa.tuple_(*key).in_(sa.select(*locked.c)))
        )
        return gone > 0 if rule.by_account else gone == rows

    async def _forget_history(self, instant: datetime, rows: int) -> bool:
        row = await first(self._session, _account_with_history(instant))
        if row is None:
            return False
        session, gone = self._session.unhurried, 0
        ended = _ended(row.number, instant).order_by(deliveries.c.id).limit(rows)
        for table, column in ((attempts, attempts.c.delivery_id), (deliveries, deliveries.c.id)):
            gone = await session.run(
                sa.delete(table).where(table.c.account == row.number, column.in_(ended))
            )
        if gone < rows:
            unneeded = _unneeded(row.number, instant).order_by(events.c.id).limit(rows)
            await session.run(
                sa.delete(events).where(events.c.account == row.number, events.c.id.in_(unneeded))
            )
        return True

    async def _drop_day(self, instant: datetime) -> bool:
        turn = sa.select(sa.func.pg_try_advisory_xact_lock(partitions.LOCK).label("is_mine"))
        row = await first(self._session, turn)
        if row is None or not row.is_mine:
            return False
        for statement in partitions.locking():
            await self._session.run(sa.text(statement))
        # Looked for under the lock: from here on nobody can send one of that day again.
        day = await self._day_to_drop(instant)
        if day is not None:
            await self._session.run(sa.text(partitions.dropping(day)))
        return day is not None

    async def _day_to_drop(self, instant: datetime) -> datetime | None:
        for day in partitions.ended_before(await self._partitions(), instant):
            if await first(self._session, _account_with_live(day)) is None:
                return day
        return None

    async def _partitions(self) -> list[str]:
        return [row.relname for row in await self._session.all(partitions.STANDING)]


def _oldest(rule: Rule, instant: datetime) -> sa.Select[Any]:
    if not rule.by_account:
        return sa.select(sa.literal(1)).select_from(rule.table).where(rule.is_old(instant)).limit(1)
    mine = sa.exists().where(rule.table.c.account_id == accounts.c.id, rule.is_old(instant))
    return sa.select(accounts.c.id).where(mine).limit(1)


def _account_with_live(day: datetime) -> sa.Select[Any]:
    """One step in the index for each account, however long the queue is."""
    live = sa.exists().where(
        queue.c.account == accounts.c.number,
        queue.c.id >= lowest_at(day),
        queue.c.id < lowest_at(day + partitions.DAY),
    )
    return sa.select(accounts.c.id).where(live).limit(1)


def _account_with_history(instant: datetime) -> sa.Select[Any]:
    found = sa.or_(
        _ended(accounts.c.number, instant).correlate(accounts).exists(),
        _unneeded(accounts.c.number, instant).correlate(accounts).exists(),
    )
    return sa.select(accounts.c.number).where(found).limit(1)


def _ended(account: Any, instant: datetime) -> sa.Select[Any]:
    return sa.select(deliveries.c.id).where(
        deliveries.c.account == account, deliveries.c.id < lowest_at(instant)
    )


def _unneeded(account: Any, instant: datetime) -> sa.Select[Any]:
    """Events of which no delivery is live; each has the millisecond of its deliveries."""
    needed = sa.select(queue.c.event_id).where(
        queue.c.account == account, queue.c.id < lowest_at(instant)
    )
    return sa.select(events.c.id).where(
        events.c.account == account,
        events.c.id < lowest_at(instant),
        events.c.id.not_in(needed.correlate(accounts)),
    )
