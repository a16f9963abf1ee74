"""Events with their immutable bodies."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.codes import EVENT_TYPE
from cuepost.adapters.storage.records.paging import Chosen
from cuepost.adapters.storage.row_writes import inserted
from cuepost.adapters.storage.session import Records, account_number, account_numbers
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.event import Event
from cuepost.domain.instants import instant_of
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page

_ADD = inserted("events", "account", "id", "type", "project_id", "occurred_at", "body", "reason")
# The columns that `event_from` reads.
COLUMNS = (
    "events.id, events.type, events.project_id, events.occurred_at, events.body, "
    "events.reason AS silence_reason"
)
_ALL = f"SELECT {COLUMNS} FROM events"
_ONE = Sql(f"{_ALL} WHERE account = :account AND id = :event")


class EventRecords(Records):
    async def add(self, happened: Sequence[Event]) -> None:
        self._session.outbox.bodies.update((event.id, event.body) for event in happened)
        numbers = await account_numbers(self._session, {each.account_id for each in happened})
        rows = [
            (
                numbers[each.account_id],
                each.id,
                each.type,
                each.project_id,
                each.occurred_at,
                each.body,
                each.reason,
            )
            for each in happened
        ]
        await self._session.write(_ADD, rows)

    async def get(self, account_id: UUID, event_id: UUID) -> Event | None:
        account = await account_number(self._session, account_id)
        rows = await self._session.fetch(_ONE, account=account, event=event_id)
        return event_from(account_id, rows[0]) if rows else None

    async def page(self, account_id: UUID, chosen: EventFilter, page: Page) -> list[Event]:
        account = await account_number(self._session, account_id)
        query = Chosen("account = :account", account=account)
        if chosen.event_type is not None:
            query.where("type = :type", type=EVENT_TYPE[chosen.event_type])
        if chosen.project_id is not None:
            query.where("project_id = :project", project=chosen.project_id)
        query.made_in("id", page, chosen.since, chosen.until)
        statement = query.newest_first(_ALL, page.limit)
        rows = await self._session.offloaded.fetch(statement, **query.values)
        return [event_from(account_id, row) for row in rows]


def event_from(account_id: UUID, row: Sequence[Any]) -> Event:
    """From the values of `COLUMNS`."""
    event_id, event_type, *others = row
    return Event(account_id, event_id, event_type, instant_of(event_id), *others)
