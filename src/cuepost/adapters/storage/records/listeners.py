"""Listeners and their streams; nothing here is written when an event is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.events import event_from
from cuepost.adapters.storage.records.numbers import account_number
from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import events, listener_events, listeners, projects
from cuepost.domain.event import SilenceReason
from cuepost.domain.listener import Listener, Mark, Turn
from cuepost.ports.listeners import Streamed
from cuepost.ports.records import Page

# Nobody subscribed, which a listener mends; the other reasons forbid to tell anybody.
_TOLD = sa.or_(
    events.c.reason.is_(None),
    events.c.reason.in_([SilenceReason.NOT_SUBSCRIBED, SilenceReason.ENDPOINT_DISABLED]),
)
_TURN = sa.text(
    "SELECT pg_current_xact_id()::text::bigint AS number, "
    "pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open"
)
# On the embedded store whoever writes is alone.
_ALONE = Turn(number=0, oldest_open=1)


class ListenerRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def turn(self) -> Turn:
        if self._session.dialect != "postgresql":
            return _ALONE
        [row] = await self._session.all(_TURN)
        return Turn(row.number, row.oldest_open)

    async def add(self, listener: Listener) -> None:
        await self._session.insert(listeners, [_row_of(listener)])
        account = await account_number(self._session, listener.account_id)
        before = sa.select(
            sa.literal(listener.account_id, listeners.c.account_id.type),
            sa.literal(listener.id, listeners.c.id.type),
            events.c.id,
            sa.literal(0),
        ).where(events.c.account == account, events.c.id >= listener.settled)
        columns = ["account_id", "listener_id", "event_id", "position"]
        await self._session.run(sa.insert(listener_events).from_select(columns, before))

    async def get(self, account_id: UUID, listener_id: UUID) -> Listener | None:
        return await self._one(_owned(account_id).where(listeners.c.id == listener_id))

    async def lock(self, account_id: UUID, listener_id: UUID) -> Listener | None:
        chosen = _owned(account_id).where(listeners.c.id == listener_id)
        return await self._one(chosen.with_for_update())

    async def lock_named(self, account_id: UUID, name: str) -> Listener | None:
        chosen = _owned(account_id).where(listeners.c.name == name)
        return await self._one(chosen.with_for_update())

    async def count(self, account_id: UUID) -> int:
        counting = sa.select(sa.func.count()).where(listeners.c.account_id == account_id)
        [row] = await self._session.all(counting)
        return int(row[0])

    async def page(self, account_id: UUID, page: Page) -> list[Listener]:
        rows = await self._session.all(newest_first(_owned(account_id), listeners.c.id, page))
        return [_listener(row) for row in rows]

    async def save(self, listener: Listener) -> None:
        await self._session.update(listeners, ("account_id", "id"), [_row_of(listener)])

    async def delete(self, account_id: UUID, listener_id: UUID) -> None:
        for table, column in (
            (listener_events, listener_events.c.listener_id),
            (listeners, listeners.c.id),
        ):
            await self._session.run(
                sa.delete(table).where(table.c.account_id == account_id, column == listener_id)
            )

    async def unnoticed(self, listener: Listener, limit: int) -> list[UUID]:
        account = await account_number(self._session, listener.account_id)
        noticed = sa.exists().where(
            listener_events.c.account_id == listener.account_id,
            listener_events.c.listener_id == listener.id,
            listener_events.c.event_id == events.c.id,
        )
        rows = await self._session.all(
            sa.select(events.c.id)
            .where(
                events.c.account == account,
                events.c.type.in_(listener.events),
                events.c.id >= listener.settled,
                _TOLD,
                ~noticed,
            )
            .order_by(events.c.id)
            .limit(limit)
        )
        return [row.id for row in rows]

    async def append(self, listener: Listener, event_ids: Sequence[UUID]) -> None:
        await self._session.insert(
            listener_events,
            [
                {
                    "account_id": listener.account_id,
                    "listener_id": listener.id,
                    "event_id": event_id,
                    "position": listener.last_position + place,
                }
                for place, event_id in enumerate(event_ids, start=1)
            ],
        )

    async def let_go(self, listener: Listener) -> None:
        await self._session.run(
            sa.delete(listener_events).where(
                listener_events.c.account_id == listener.account_id,
                listener_events.c.listener_id == listener.id,
                listener_events.c.position <= listener.acknowledged,
                listener_events.c.event_id < listener.settled,
            )
        )

    async def waiting(self, listener: Listener, now: datetime, limit: int) -> list[Streamed]:
        account = await account_number(self._session, listener.account_id)
        silenced = sa.exists().where(
            projects.c.account_id == listener.account_id,
            projects.c.id == events.c.project_id,
            sa.or_(projects.c.deleted_at.is_not(None), projects.c.access_expires_at <= now),
        )
        rows = await self._session.all(
            sa.select(listener_events.c.position, *events.c)
            .join_from(
                listener_events,
                events,
                sa.and_(
                    events.c.account == account,
                    events.c.id == listener_events.c.event_id,
                ),
            )
            .where(
                listener_events.c.account_id == listener.account_id,
                listener_events.c.listener_id == listener.id,
                listener_events.c.position > listener.acknowledged,
                ~silenced,
            )
            .order_by(listener_events.c.position)
            .limit(limit)
        )
        return [Streamed(row.position, event_from(listener.account_id, row)) for row in rows]

    async def any_unserved(self, before: datetime) -> bool:
        unserved = sa.select(listeners.c.id).where(listeners.c.served_at < before).limit(1)
        return await first(self._session, unserved) is not None

    async def forget_unserved(self, before: datetime, limit: int) -> bool:
        # Others may be at the same ones; whoever has them locked forgets them, or serves them.
        rows = await self._session.all(
            sa.select(listeners.c.account_id, listeners.c.id)
            .where(listeners.c.served_at < before)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        for row in rows:
            await self.delete(row.account_id, row.id)
        return len(rows) == limit

    async def _one(self, statement: sa.Select[Any]) -> Listener | None:
        row = await first(self._session, statement)
        return _listener(row) if row else None


def _owned(account_id: UUID) -> sa.Select[Any]:
    return sa.select(listeners).where(listeners.c.account_id == account_id)


def _row_of(listener: Listener) -> dict[str, Any]:
    return {
        "account_id": listener.account_id,
        "id": listener.id,
        "name": listener.name,
        "events": " ".join(listener.events),
        "created_at": listener.created_at,
        "served_at": listener.served_at,
        "settled": listener.settled,
        "mark_at": listener.mark.at,
        "mark_number": listener.mark.number,
        "acknowledged": listener.acknowledged,
        "last_position": listener.last_position,
    }


def _listener(row: sa.Row[Any]) -> Listener:
    return Listener(
        account_id=row.account_id,
        id=row.id,
        name=row.name,
        events=tuple(row.events.split()),
        created_at=row.created_at,
        served_at=row.served_at,
        settled=row.settled,
        mark=Mark(row.mark_at, row.mark_number),
        acknowledged=row.acknowledged,
        last_position=row.last_position,
    )
