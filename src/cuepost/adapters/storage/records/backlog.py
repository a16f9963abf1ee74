"""How many deliveries wait and for how long: a few index steps, however long the queue is."""

from datetime import datetime, timedelta

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import IN_FLIGHT, WAITING
from cuepost.adapters.storage.records.claim_statements import LANES_BEHIND, STATES
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import LIVE, DeliveryStatus
from cuepost.ports.dispatch import BEGINNING
from cuepost.ports.telemetry import Waiting

COUNTED_AT_MOST = 10_000
LANES_WALKED = 1_000
_DUE_FIRST = Sql(
    f"""
    SELECT status, count(*) AS count, min(due_at) AS due_at
    FROM (
        SELECT status, due_at FROM queue WHERE {WAITING} ORDER BY due_at LIMIT :most
    ) AS due_first
    GROUP BY status
    """
)
_LEASED = Sql(f"SELECT count(*) AS count, min(due_at) AS due_at FROM queue WHERE {IN_FLIGHT}")
_EARLIEST_OF_LANES = {
    state: Sql(
        f"""
        {LANES_BEHIND}
        SELECT min(due_at) AS due_at
        FROM (
            SELECT (
                SELECT queue.due_at FROM queue
                WHERE {WAITING}
                    AND queue.endpoint = lane.endpoint AND queue.status = {STATUS[state]}
                ORDER BY queue.due_at LIMIT 1
            ) AS due_at
            FROM lane LIMIT {LANES_WALKED}
        ) AS earliest
        """
    )
    for state in STATES
}


class BacklogRecords:
    def __init__(self, session: StoreSession) -> None:
        # Counting may take long.
        self._session = session.offloaded

    async def waiting(self, now: datetime) -> dict[DeliveryStatus, Waiting]:
        rows = await self._session.fetch(_DUE_FIRST, most=COUNTED_AT_MOST)
        found = {state: _waiting(count, due_at, now) for state, count, due_at in rows}
        if sum(count for _, count, _ in rows) == COUNTED_AT_MOST:
            for state in set(STATES) - set(found):
                found[state] = await self._behind_the_others(state, now)
        [(count, due_at)] = await self._session.fetch(_LEASED)
        found[DeliveryStatus.DELIVERING] = _waiting(count, due_at, now)
        return {state: found.get(state, Waiting()) for state in LIVE}

    async def _behind_the_others(self, state: DeliveryStatus, now: datetime) -> Waiting:
        """All counted deliveries are in the other state, so this takes one step per endpoint."""
        [(due_at,)] = await self._session.fetch(_EARLIEST_OF_LANES[state], behind=BEGINNING)
        return _waiting(int(due_at is not None), due_at, now)


def _waiting(total: int, due_at: datetime | None, now: datetime) -> Waiting:
    overdue = timedelta(0) if due_at is None else max(now - due_at, timedelta(0))
    return Waiting(total, overdue)
