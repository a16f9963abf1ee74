"""Results of attempts on SQLite: deliveries that end are deleted from the queue without a read."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.records import health
from cuepost.adapters.storage.records.outcomes import (
    ENDED,
    Open,
    OutcomeRecords,
    by_id,
    ended_row,
    keys_of,
)
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.adapters.storage.sqlite_session import SqliteSession
from cuepost.ports.dispatch import Lane, Result

_HEALTH = Sql(health.CHANGING)
_OPEN = by_keys(f"SELECT {', '.join(Open._fields)} FROM queue", "account", "id")
_LEASE = ("id", "account", "budget", "attempts_made", "worker")


class SqliteOutcomeRecords(OutcomeRecords):
    def __init__(self, session: SqliteSession) -> None:
        super().__init__(session)
        self._sqlite = session

    async def _end_leased(
        self, worker: UUID, results: Sequence[Result], now: datetime
    ) -> tuple[Sequence[Result], dict[Lane, health.Remembered]]:
        changing = await self._changing(results, now)
        encoding = self._session.encoding
        finished_at, leased_to = encoding.instant(now), encoding.id(worker)
        ending = {
            encoding.id(each.assignment.delivery_id): each
            for each in reversed(results)
            if each.next_step.due_at is None
        }
        leases = [
            (
                delivery_id,
                each.assignment.account,
                each.assignment.budget,
                each.assignment.number - 1,
                leased_to,
            )
            for delivery_id, each in ending.items()
        ]
        removed = await self._sqlite.remove_encoded("queue", _LEASE, leases)
        ended = [ending[delivery_id] for delivery_id in removed]
        rows = [ended_row(each, finished_at, encoding) for each in ended]
        await self._session.insert_encoded("deliveries", ENDED, rows)
        return ended, changing

    async def _changing(
        self, results: Sequence[Result], now: datetime
    ) -> dict[Lane, health.Remembered]:
        chosen = health.chosen_by(results, now)
        if not chosen["health_lanes"]:
            return {}
        found = await self._session.fetch(_HEALTH, **chosen)
        if untroubled := [number for number, *_, is_untroubled in found if is_untroubled]:
            await self._session.execute(health.ACKNOWLEDGE, now=now, lanes=untroubled)
        return health.remembered(row[:-1] for row in found if not row[-1])

    async def _open(
        self, rest: Sequence[Result], now: datetime, changing: dict[Lane, health.Remembered]
    ) -> dict[UUID, Open]:
        return by_id(await self._session.fetch(_OPEN, **keys_of(rest)))
