"""The queue on SQLite: one statement for each step, since a statement costs no round trip."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.records.claim_statements import DUE, STATES, Due
from cuepost.adapters.storage.records.claims import Claims, Fact, Found
from cuepost.adapters.storage.records.delivery_rows import KEY
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Claim, Lane


def _due_in_one(state: DeliveryStatus) -> str:
    return f"""
    SELECT * FROM (
        SELECT {DUE} FROM queue
        WHERE {WAITING} AND endpoint = :lane AND status = {STATUS[state]} AND due_at <= :now
        ORDER BY due_at LIMIT :most
    ) AS due
    """


_DUE_IN_ONE = Sql(" UNION ALL ".join(_due_in_one(state) for state in STATES))
# Lanes that no other worker holds.
_HOLD = Sql(
    """
    INSERT INTO lanes (endpoint, worker_id)
    SELECT value, :worker FROM json_each(:lanes) WHERE true
    ON CONFLICT (endpoint) DO UPDATE SET worker_id = excluded.worker_id
    WHERE lanes.worker_id = excluded.worker_id
    RETURNING endpoint
    """
)
_FACTS = by_keys(
    """
    SELECT events.id, events.body, projects.access_expires_at, projects.deleted_at
    FROM events
    JOIN accounts ON accounts.number = events.account
    LEFT JOIN projects ON projects.account_id = accounts.id AND projects.id = events.project_id
    """,
    "events.account",
    "events.id",
    lists=("accounts", "events"),
)


class SqliteClaims(Claims):
    async def _read_due(
        self, found: Found, chosen: Sequence[Lane], wanted: Claim, now: datetime, most: int
    ) -> None:
        await self._release_lanes(wanted.worker, wanted.idle)
        # Without other workers no lane has to be held.
        held = chosen if wanted.share is None else await self._hold(wanted.worker, chosen)
        found.held |= set(held)
        for lane in held:
            if len(found.rows) < wanted.room:
                rows = await self._session.fetch(_DUE_IN_ONE, lane=lane, now=now, most=most)
                found.put([Due._make(row) for row in rows], most)
            else:
                found.cut.add(lane)

    async def _hold(self, worker: UUID, chosen: Sequence[Lane]) -> Sequence[Lane]:
        """Those of the chosen lanes that no other worker holds."""
        if not chosen:
            return []
        rows = await self._session.fetch(_HOLD, worker=worker, lanes=chosen)
        return [lane for (lane,) in rows]

    async def _lease(self, worker: UUID, picked: Sequence[Due]) -> dict[UUID, Fact]:
        leased = {"status": DeliveryStatus.DELIVERING, "worker": worker}
        changed = [{"account": row.account, "id": row.id} | leased for row in picked]
        await self._session.update("queue", KEY, changed)
        rows = await self._session.fetch(
            _FACTS,
            accounts=[row.account for row in picked],
            events=[row.event_id for row in picked],
        )
        return {event_id: Fact(*facts) for event_id, *facts in rows}


class SqliteQueue(QueueRecords):
    claims = SqliteClaims
