"""The statements of a claim."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.sql import Sql, by_keys
from cuepost.domain.delivery import DeliveryStatus, Trigger
from cuepost.ports.dispatch import Lane

EARLIEST_LOOKED_AT = 32
LANES_LOOKED_AT = 64
STATES = (DeliveryStatus.PENDING, DeliveryStatus.RETRYING)


class Due(NamedTuple):
    """The columns of `queue` that a claim reads."""

    account: int
    id: UUID
    endpoint: Lane
    event_id: UUID
    status: DeliveryStatus
    due_at: datetime
    trigger: Trigger
    budget: int
    attempts_made: int
    attempt_count: int
    event_type: str
    project_id: UUID | None
    delivered_at: datetime | None


_DUE = ", ".join(Due._fields)


def _waiting(chosen: str, most: int) -> str:
    """Grouped by lane, because the longest due deliveries may all be of one lane."""
    return f"""
    SELECT endpoint, min(due_at) AS due_at, count(*) AS count
    FROM (
        SELECT endpoint, due_at FROM queue WHERE {WAITING} AND {chosen}
        ORDER BY due_at LIMIT {most}
    ) AS earliest
    GROUP BY endpoint
    """


# The lanes of the longest due deliveries with their counts, then the lane that is due next.
EARLIEST = Sql(
    f"{_waiting('due_at <= :now', EARLIEST_LOOKED_AT)} UNION ALL {_waiting('due_at > :now', 1)}"
)


def _next_lane(behind: str) -> str:
    return f"""
    SELECT queue.endpoint FROM queue WHERE {WAITING} AND queue.endpoint > {behind}
    ORDER BY queue.endpoint LIMIT 1
    """


# The lanes with waiting deliveries, then NULL: one index step for each lane.
LANES_BEHIND = f"""
WITH RECURSIVE lane (endpoint) AS (
    SELECT ({_next_lane(":behind")})
    UNION ALL
    SELECT ({_next_lane("lane.endpoint")}) FROM lane WHERE lane.endpoint IS NOT NULL
)
"""
LANES = Sql(
    f"""
    {LANES_BEHIND}
    SELECT endpoint FROM lane WHERE endpoint IS NOT NULL LIMIT {LANES_LOOKED_AT}
    """
)


def _due_in_one(state: DeliveryStatus) -> str:
    return f"""
    SELECT * FROM (
        SELECT {_DUE} FROM queue
        WHERE {WAITING} AND endpoint = :lane AND status = {STATUS[state]} AND due_at <= :now
        ORDER BY due_at LIMIT :most
    ) AS due
    """


# DUE_IN_ONE and HOLD are used on SQLite only.
DUE_IN_ONE = Sql(" UNION ALL ".join(_due_in_one(state) for state in STATES))
RELEASE_LANES = Sql("DELETE FROM lanes WHERE worker_id = :worker AND endpoint IN :idle")
# Lanes that no other worker holds.
HOLD = Sql(
    """
    INSERT INTO lanes (endpoint, worker_id)
    SELECT value, :worker FROM json_each(:lanes) WHERE true
    ON CONFLICT (endpoint) DO UPDATE SET worker_id = excluded.worker_id
    WHERE lanes.worker_id = excluded.worker_id
    RETURNING endpoint
    """
)
# On PostgreSQL in one round trip: hold lanes that no other worker holds, find the deliveries that
# are due in them, and release other lanes. Lanes are taken in the order of ids and released last,
# and lanes of other workers are not touched, which avoids deadlocks. Rows are compared as a whole,
# because only the index of lanes has them in that order: beside a long backlog the planner would
# otherwise look for the few deliveries of a lane among all that are due.
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
        SELECT {_DUE} FROM queue
        WHERE {WAITING}
            AND (endpoint, status, due_at) >= (held.endpoint, wanted.status, '-infinity')
            AND (endpoint, status, due_at) <= (held.endpoint, wanted.status, :now)
        ORDER BY endpoint, status, due_at LIMIT :most FOR UPDATE SKIP LOCKED
    ) AS due ON true
    """
)

# Used on SQLite only.
FACTS = by_keys(
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

# On PostgreSQL the same facts, of deliveries that the same statement leases. The bounds only limit
# the partitions that are searched.
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
