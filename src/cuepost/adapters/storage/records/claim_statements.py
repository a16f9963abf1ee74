"""The statements of a claim that both engines have in common."""

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.sql import Sql
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


DUE = ", ".join(Due._fields)


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


RELEASE_LANES = Sql("DELETE FROM lanes WHERE worker_id = :worker AND endpoint IN :idle")
