"""How much waits and for how long: a few steps in indexes, however long the queue is."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import IN_FLIGHT, WAITING, queue
from cuepost.adapters.storage.tables.history import STATUS
from cuepost.domain.delivery import LIVE, DeliveryStatus
from cuepost.ports.telemetry import Waiting

COUNTED_AT_MOST = 10_000
LANES_WALKED = 1_000
_EARLIEST = sa.func.min(queue.c.due_at).label("due_at")
_COUNT = sa.func.count().label("total")


class BacklogRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def waiting(self, now: datetime) -> dict[DeliveryStatus, Waiting]:
        rows = await self._session.all(_due_first())
        found = {DeliveryStatus(row.status): _waiting(row.total, row.due_at, now) for row in rows}
        if sum(row.total for row in rows) == COUNTED_AT_MOST:
            for state in {DeliveryStatus.PENDING, DeliveryStatus.RETRYING} - set(found):
                found[state] = await self._behind_the_others(state, now)
        leased = await first(self._session, sa.select(_COUNT, _EARLIEST).where(IN_FLIGHT))
        assert leased is not None
        found[DeliveryStatus.DELIVERING] = _waiting(leased.total, leased.due_at, now)
        return {state: found.get(state, Waiting()) for state in LIVE}

    async def _behind_the_others(self, state: DeliveryStatus, now: datetime) -> Waiting:
        """One step for each endpoint: all that were counted are in the other state."""
        row = await first(self._session, _earliest_of_lanes(state))
        assert row is not None
        return _waiting(int(row.due_at is not None), row.due_at, now)


def _waiting(total: int, due_at: datetime | None, now: datetime) -> Waiting:
    overdue = timedelta(0) if due_at is None else max(now - due_at, timedelta(0))
    return Waiting(total, overdue)


def _due_first() -> sa.Select[Any]:
    due_first = (
        sa.select(queue.c.status, queue.c.due_at)
        .where(WAITING)
        .order_by(queue.c.due_at)
        .limit(COUNTED_AT_MOST)
        .subquery()
    )
    return sa.select(
        due_first.c.status, _COUNT, sa.func.min(due_first.c.due_at).label("due_at")
    ).group_by(due_first.c.status)


def _earliest_of_lanes(state: DeliveryStatus) -> sa.Select[Any]:
    lane = sa.select(_next_lane(sa.true()).label("endpoint")).cte("lane", recursive=True)
    following = _next_lane(queue.c.endpoint > lane.c.endpoint, lane)
    lane = lane.union_all(sa.select(following).where(lane.c.endpoint.is_not(None)))
    lanes = sa.select(lane.c.endpoint).limit(LANES_WALKED).subquery()
    earliest = (
        sa.select(queue.c.due_at)
        .where(
            WAITING,
            queue.c.endpoint == lanes.c.endpoint,
            queue.c.status == STATUS.literal(state),
        )
        .order_by(queue.c.due_at)
        .limit(1)
        .correlate(lanes)
        .scalar_subquery()
    )
    return sa.select(sa.func.min(earliest).label("due_at"))


def _next_lane(behind: sa.ColumnElement[bool], *lane: sa.CTE) -> sa.ScalarSelect[Any]:
    following = sa.select(queue.c.endpoint).where(WAITING, behind).order_by(queue.c.endpoint)
    return following.limit(1).correlate(*lane).scalar_subquery()
