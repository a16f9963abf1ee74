"""Events with their frozen bodies."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.encoding import ENCODINGS
from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records.numbers import account_number, account_numbers
from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import events
from cuepost.adapters.storage.tables.history import EVENT_TYPE, SILENCE_REASON
from cuepost.domain.event import Event
from cuepost.domain.ids import instant_of
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page

_COLUMNS = ("account", "id", "type", "project_id", "occurred_at", "body", "reason")
TYPES = EVENT_TYPE.codes
REASONS = SILENCE_REASON.codes


class EventRecords:
    def __init__(self, session: Session, outbox: Outbox) -> None:
        self._session = session
        self._outbox = outbox

    async def add(self, happened: Sequence[Event]) -> None:
        self._outbox.bodies.update((event.id, event.body) for event in happened)
        numbers = await account_numbers(self._session, {each.account_id for each in happened})
        encoding = ENCODINGS[self._session.dialect]
        to_id, to_instant = encoding.id, encoding.instant
        rows = [
            (
                numbers[each.account_id],
                to_id(each.id),
                TYPES[each.type],
                encoding.id_or_none(each.project_id),
                to_instant(each.occurred_at),
                each.body,
                REASONS[each.reason],
            )
            for each in happened
        ]
        await self._session.insert_encoded(events, _COLUMNS, rows)

    async def get(self, account_id: UUID, event_id: UUID) -> Event | None:
        account = await account_number(self._session, account_id)
        row = await first(
            self._session,
            sa.select(events).where(events.c.account == account, events.c.id == event_id),
        )
        return event_from(account_id, row) if row else None

    async def page(self, account_id: UUID, chosen: EventFilter, page: Page) -> list[Event]:
        account = await account_number(self._session, account_id)
        statement = sa.select(events).where(events.c.account == account)
        if chosen.event_type is not None:
            statement = statement.where(events.c.type == chosen.event_type)
        if chosen.project_id is not None:
            statement = statement.where(events.c.project_id == chosen.project_id)
        rows = await self._session.all(
            newest_first(statement, events.c.id, page, chosen.since, chosen.until)
        )
        return [event_from(account_id, row) for row in rows]


def event_from(account_id: UUID, row: sa.Row[Any]) -> Event:
    return Event(
        account_id=account_id,
        id=row.id,
        type=row.type,
        created_at=instant_of(row.id),
        project_id=row.project_id,
        occurred_at=row.occurred_at,
        body=row.body,
        reason=row.reason,
    )
