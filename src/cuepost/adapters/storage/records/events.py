"""Events with their frozen bodies."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import events
from cuepost.domain.event import Event, SilenceReason
from cuepost.domain.ids import instant_of
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page


class EventRecords:
    def __init__(self, session: Session, outbox: Outbox) -> None:
        self._session = session
        self._outbox = outbox

    async def add(self, happened: Sequence[Event]) -> None:
        self._outbox.bodies.update((event.id, event.body) for event in happened)
        await self._session.insert(
            events,
            [
                {
                    "account_id": event.account_id,
                    "id": event.id,
                    "type": event.type,
                    "project_id": event.project_id,
                    "occurred_at": event.occurred_at,
                    "body": event.body,
                    "reason": event.reason,
                }
                for event in happened
            ],
        )

    async def get(self, account_id: UUID, event_id: UUID) -> Event | None:
        row = await first(
            self._session,
            sa.select(events).where(events.c.account_id == account_id, events.c.id == event_id),
        )
        return event_from(row) if row else None

    async def page(self, account_id: UUID, chosen: EventFilter, page: Page) -> list[Event]:
        statement = sa.select(events).where(events.c.account_id == account_id)
        if chosen.event_type is not None:
            statement = statement.where(events.c.type == chosen.event_type)
        if chosen.project_id is not None:
            statement = statement.where(events.c.project_id == chosen.project_id)
        rows = await self._session.all(
            newest_first(statement, events.c.id, page, chosen.since, chosen.until)
        )
        return [event_from(row) for row in rows]


def event_from(row: sa.Row[Any]) -> Event:
    return Event(
        account_id=row.account_id,
        id=row.id,
        type=row.type,
        created_at=instant_of(row.id),
        project_id=row.project_id,
        occurred_at=row.occurred_at,
        body=row.body,
        reason=SilenceReason(row.reason) if row.reason else None,
    )
