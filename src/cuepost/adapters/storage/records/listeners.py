"""Listeners and their streams; adding an event writes nothing here."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.codes import EVENT_TYPE, SILENCE_REASON
from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.records.events import COLUMNS, event_from
from cuepost.adapters.storage.session import Records, account_number
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.event import SilenceReason
from cuepost.domain.listener import Listener, Mark, TransactionNumbers
from cuepost.ports.listeners import Streamed
from cuepost.ports.records import Page

_COLUMNS = (
    "account_id",
    "id",
    "name",
    "events",
    "created_at",
    "served_at",
    "settled",
    "mark_at",
    "mark_number",
    "acknowledged",
    "last_position",
)
_OF_ACCOUNT = f"SELECT {', '.join(_COLUMNS)} FROM listeners WHERE account_id = :account_id"
_ONE = Sql(f"{_OF_ACCOUNT} AND id = :listener_id")
_LOCKED = Sql(f"{_OF_ACCOUNT} AND id = :listener_id FOR UPDATE")
_LOCKED_NAMED = Sql(f"{_OF_ACCOUNT} AND name = :name FOR UPDATE")
_PAGE = paging.pages(_OF_ACCOUNT)
_COUNT = Sql("SELECT count(*) AS count FROM listeners WHERE account_id = :account_id")
_SKIP_EARLIER = Sql(
    """
    INSERT INTO listener_events (account_id, listener_id, event_id, "position")
    SELECT :account_id::uuid, :listener_id::uuid, id, 0 FROM events
    WHERE account = :account AND id >= :settled
    """
)
_DELETIONS = (
    Sql(
        "DELETE FROM listener_events WHERE account_id = :account_id AND listener_id = :listener_id"
    ),
    Sql("DELETE FROM listeners WHERE account_id = :account_id AND id = :listener_id"),
)
# These events had no receiver, so a listener may get them; the other reasons forbid to send them.
_STREAMED_REASONS = ", ".join(
    str(SILENCE_REASON[reason])
    for reason in (SilenceReason.NOT_SUBSCRIBED, SilenceReason.ENDPOINT_DISABLED)
)
_TO_APPEND = Sql(
    f"""
    SELECT events.id FROM events
    WHERE events.account = :account AND events.type IN :types AND events.id >= :settled
        AND (events.reason IS NULL OR events.reason IN ({_STREAMED_REASONS}))
        AND NOT EXISTS (
            SELECT 1 FROM listener_events
            WHERE account_id = :account_id AND listener_id = :listener_id
                AND event_id = events.id
        )
    ORDER BY events.id LIMIT :most
    """
)
_DELETE_ACKNOWLEDGED = Sql(
    """
    DELETE FROM listener_events
    WHERE account_id = :account_id AND listener_id = :listener_id
        AND "position" <= :acknowledged AND event_id < :settled
    """
)
_WAITING = Sql(
    f"""
    SELECT listener_events."position", {COLUMNS}
    FROM listener_events
    JOIN events ON events.account = :account AND events.id = listener_events.event_id
    WHERE listener_events.account_id = :account_id AND listener_events.listener_id = :listener_id
        AND listener_events."position" > :acknowledged
        AND NOT EXISTS (
            SELECT 1 FROM projects
            WHERE projects.account_id = :account_id AND projects.id = events.project_id
                AND (projects.deleted_at IS NOT NULL OR projects.access_expires_at <= :now)
        )
    ORDER BY listener_events."position" LIMIT :most
    """
)
_ANY_UNSERVED = Sql("SELECT id FROM listeners WHERE served_at < :before LIMIT 1")
_UNSERVED = Sql(
    """
    SELECT account_id, id FROM listeners WHERE served_at < :before
    LIMIT :most FOR UPDATE SKIP LOCKED
    """
)
_TURN = Sql(
    # There is only one writer.
    sqlite="SELECT 0 AS number, 1 AS oldest_open",
    postgresql="""
        SELECT pg_current_xact_id()::text::bigint AS number,
            pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS oldest_open
        """,
)


class ListenerRecords(Records):
    async def transaction_numbers(self) -> TransactionNumbers:
        [row] = await self._session.fetch(_TURN)
        return TransactionNumbers(*row)

    async def add(self, listener: Listener) -> None:
        await self._session.insert("listeners", [_row_of(listener)])
        await self._session.execute(
            _SKIP_EARLIER, settled=listener.settled, **await self._identified(listener)
        )

    async def get(self, account_id: UUID, listener_id: UUID) -> Listener | None:
        return await self._one(_ONE, account_id=account_id, listener_id=listener_id)

    async def lock(self, account_id: UUID, listener_id: UUID) -> Listener | None:
        return await self._one(_LOCKED, account_id=account_id, listener_id=listener_id)

    async def lock_named(self, account_id: UUID, name: str) -> Listener | None:
        return await self._one(_LOCKED_NAMED, account_id=account_id, name=name)

    async def count(self, account_id: UUID) -> int:
        [(count,)] = await self._session.fetch(_COUNT, account_id=account_id)
        return int(count)

    async def page(self, account_id: UUID, page: Page) -> list[Listener]:
        rows = await self._session.offloaded.fetch(
            _PAGE, account_id=account_id, **paging.bounds(page)
        )
        return [_listener(row) for row in rows]

    async def save(self, listener: Listener) -> None:
        await self._session.update("listeners", ("account_id", "id"), [_row_of(listener)])

    async def delete(self, account_id: UUID, listener_id: UUID) -> None:
        for deletion in _DELETIONS:
            await self._session.execute(deletion, account_id=account_id, listener_id=listener_id)

    async def to_append(self, listener: Listener, limit: int) -> list[UUID]:
        rows = await self._session.offloaded.fetch(
            _TO_APPEND,
            types=[EVENT_TYPE[name] for name in listener.events],
            settled=listener.settled,
            most=limit,
            **await self._identified(listener),
        )
        return [event_id for (event_id,) in rows]

    async def append(self, listener: Listener, event_ids: Sequence[UUID]) -> None:
        await self._session.insert(
            "listener_events",
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

    async def delete_acknowledged(self, listener: Listener) -> None:
        await self._session.execute(
            _DELETE_ACKNOWLEDGED,
            account_id=listener.account_id,
            listener_id=listener.id,
            acknowledged=listener.acknowledged,
            settled=listener.settled,
        )

    async def waiting(self, listener: Listener, now: datetime, limit: int) -> list[Streamed]:
        rows = await self._session.offloaded.fetch(
            _WAITING,
            acknowledged=listener.acknowledged,
            now=now,
            most=limit,
            **await self._identified(listener),
        )
        return [
            Streamed(position, event_from(listener.account_id, event)) for position, *event in rows
        ]

    async def any_unserved(self, before: datetime) -> bool:
        return bool(await self._session.fetch(_ANY_UNSERVED, before=before))

    async def delete_unserved(self, before: datetime, limit: int) -> bool:
        # Locked ones are skipped: another process is deleting or serving them.
        rows = await self._session.fetch(_UNSERVED, before=before, most=limit)
        for account_id, listener_id in rows:
            await self.delete(account_id, listener_id)
        return len(rows) == limit

    async def _one(self, statement: Sql, **values: Any) -> Listener | None:
        rows = await self._session.fetch(statement, **values)
        return _listener(rows[0]) if rows else None

    async def _identified(self, listener: Listener) -> dict[str, Any]:
        """Events refer to the account by number, other tables by id."""
        return {
            "account": await account_number(self._session, listener.account_id),
            "account_id": listener.account_id,
            "listener_id": listener.id,
        }


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


def _listener(row: Sequence[Any]) -> Listener:
    account_id, identifier, name, events, created_at, served_at, settled, *rest = row
    mark_at, mark_number, acknowledged, last_position = rest
    return Listener(
        account_id=account_id,
        id=identifier,
        name=name,
        events=tuple(events.split()),
        created_at=created_at,
        served_at=served_at,
        settled=settled,
        mark=Mark(mark_at, mark_number),
        acknowledged=acknowledged,
        last_position=last_position,
    )
