"""Results of attempts on SQLite: deliveries that end are deleted from the queue without a read."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.records import health
from cuepost.adapters.storage.records.late_results import keys_of
from cuepost.adapters.storage.records.outcomes import (
    ADD_ENDED,
    Open,
    OutcomeRecords,
    by_id,
    ended_row,
)
from cuepost.adapters.storage.row_writes import deleted
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.ports.dispatch import Lane, Result

_HEALTH = Sql(health.CHANGING)
_OPEN = by_keys(f"SELECT {', '.join(Open._fields)} FROM queue", "account", "id")
_UNQUEUE = deleted("queue", "id", "account", "budget", "attempts_made", "worker", returns=True)


class SqliteOutcomeRecords(OutcomeRecords):
    async def _end_leased(
        self, worker: UUID, results: Sequence[Result], now: datetime
    ) -> tuple[Sequence[Result], dict[Lane, health.Remembered]]:
        changing = await self._changing(results, now)
        ending = {
            each.assignment.delivery_id.bytes: each
            for each in reversed(results)
            if each.next_step.due_at is None
        }
        made = [each.assignment for each in ending.values()]
        leases = [
            (each.delivery_id, each.account, each.budget, each.number - 1, worker) for each in made
        ]
        ended = [ending[removed] for removed in await self._session.write(_UNQUEUE, leases)]
        await self._session.write(ADD_ENDED, [ended_row(each, now) for each in ended])
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
        keys = keys_of([each.assignment for each in rest])
        return by_id(await self._session.fetch(_OPEN, **keys))
