"""The queue on PostgreSQL: few round trips, and several workers that share it."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.records.claim_statements import DUE, STATES, Due
from cuepost.adapters.storage.records.claims import Claims, Fact, Found
from cuepost.adapters.storage.records.queue import QueueRecords
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Claim, Claimed, Lane

WORK_CHANNEL = "cuepost_work"
# A wake-up without lanes says that the set of workers has changed.
_WORKERS_CHANGED = Sql(postgresql=f"SELECT pg_notify('{WORK_CHANNEL}', '')")
_TIME = Sql(postgresql="SELECT clock_timestamp()")
# Leaves only plans that read the queue in the order of an index. While nearly everything in it is
# in flight, the server expects that nothing waits; a plan that reads all that waits and sorts it
# looks cheaper then, and is kept while the queue grows.
_WITHOUT_SORTING = Sql(postgresql="SET LOCAL enable_sort = off")
# In one round trip: hold lanes that no other worker holds, find the deliveries that are due in
# them, and release other lanes. Lanes are taken in the order of ids and released last, and lanes of
# other workers are not touched, which avoids deadlocks. Rows are compared as a whole, because only
# the index of lanes has them in that order: beside a long backlog the planner would otherwise look
# for the few deliveries of a lane among all that are due.
HOLD_AND_FIND_DUE = Sql(
    f"""
    WITH gained AS (
        INSERT INTO lanes (endpoint, worker_id)
        SELECT lane, :worker::uuid FROM unnest(:lanes::integer[]) AS lane
        ON CONFLICT DO NOTHING RETURNING endpoint
    ), kept AS (
        SELECT endpoint FROM lanes WHERE worker_id = :worker AND endpoint IN :lanes FOR UPDATE
    ), given_up AS (
        DELETE FROM lanes WHERE worker_id = :worker AND endpoint IN :idle
    )
    SELECT held.endpoint, due.*
    FROM (SELECT * FROM gained UNION ALL SELECT * FROM kept) AS held
    CROSS JOIN (VALUES {", ".join(f"({STATUS[state]})" for state in STATES)}) AS wanted (status)
    LEFT JOIN LATERAL (
        SELECT {DUE} FROM queue
        WHERE {WAITING}
            AND (endpoint, status, due_at) >= (held.endpoint, wanted.status, '-infinity')
            AND (endpoint, status, due_at) <= (held.endpoint, wanted.status, :now)
        ORDER BY endpoint, status, due_at LIMIT :most FOR UPDATE SKIP LOCKED
    ) AS due ON true
    """
)

# The facts of deliveries that the same statement leases. The bounds only limit the partitions that
# are searched.
LEASE_WITH_FACTS = Sql(
    f"""
    UPDATE queue SET status = {STATUS[DeliveryStatus.DELIVERING]}, worker = :worker
    FROM unnest(:accounts::integer[], :deliveries::uuid[], :events::uuid[])
        AS picked (account, id, event_id)
    LEFT JOIN events
        ON events.account == picked.account AND events.id == picked.event_id
        AND (events.id BETWEEN :first_event AND :last_event OR events.id = :first_event)
    LEFT JOIN accounts ON accounts.number = picked.account
    LEFT JOIN projects
        ON projects.id == events.project_id AND (projects.account_id = accounts.id) IS TRUE
    WHERE queue.account == picked.account AND queue.id == picked.id
    RETURNING events.id, events.body, projects.access_expires_at, projects.deleted_at
    """
)


class PostgresClaims(Claims):
    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        await self._session.fetch(_WITHOUT_SORTING)
        return await super().claim(wanted, now)

    async def _read_due(
        self, found: Found, chosen: Sequence[Lane], wanted: Claim, now: datetime, most: int
    ) -> None:
        rows = await self._session.fetch(
            HOLD_AND_FIND_DUE,
            worker=wanted.worker,
            lanes=sorted(chosen),
            idle=wanted.idle,
            now=now,
            most=most,
        )
        found.held |= {row[0] for row in rows}
        found.put([Due._make(row[1:]) for row in rows if row[1] is not None], most)

    async def _lease(self, worker: UUID, picked: Sequence[Due]) -> dict[UUID, Fact]:
        events = [row.event_id for row in picked]
        rows = await self._session.fetch(
            LEASE_WITH_FACTS,
            worker=worker,
            accounts=[row.account for row in picked],
            deliveries=[row.id for row in picked],
            events=events,
            first_event=min(events),
            last_event=max(events),
        )
        return {event_id: Fact(*facts) for event_id, *facts in rows}


class PostgresQueue(QueueRecords):
    claims = PostgresClaims

    async def time(self, here: datetime) -> datetime:
        if not self._session.uses_server_clock:
            return here
        [(time,)] = await self._session.fetch(_TIME)
        assert isinstance(time, datetime)
        return time

    async def _wake_workers(self) -> None:
        await self._session.fetch(_WORKERS_CHANGED)
