"""The statements of a claim, written once for each engine."""

from typing import Any

import sqlalchemy as sa

from cuepost.adapters.storage.statements import Among, Pairs, Prepared
from cuepost.adapters.storage.tables import WAITING, events, lanes, projects, queue
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.delivery import DeliveryStatus

EARLIEST_LOOKED_AT = 128
LANES_LOOKED_AT = 64
STATES = (DeliveryStatus.PENDING, DeliveryStatus.RETRYING)
DUE = (
    queue.c.account_id,
    queue.c.delivery_id,
    queue.c.webhook_id,
    queue.c.event_id,
    queue.c.state,
    queue.c.due_at,
    queue.c.trigger,
    queue.c.budget,
    queue.c.attempts_made,
    queue.c.attempt_count,
)
_NOW = sa.bindparam("now", type_=Instant)
_BEHIND = sa.bindparam("behind", type_=Id)
# A parameter, and as a number: SQLAlchemy would look at its value while it writes the statement.
_MOST: Any = sa.bindparam("most", type_=sa.Integer)

EARLIEST = Prepared(
    sa.select(queue.c.webhook_id)
    .where(WAITING, queue.c.due_at <= _NOW)
    .order_by(queue.c.due_at)
    .limit(sa.literal_column(str(EARLIEST_LOOKED_AT)))
)


def _next_lane(behind: sa.ColumnElement[bool]) -> sa.Select[tuple[Any]]:
    following = sa.select(queue.c.webhook_id).where(WAITING, behind).order_by(queue.c.webhook_id)
    return following.limit(sa.literal_column("1"))


def _lanes() -> sa.Select[tuple[Any]]:
    """The next lanes that have something waiting: one step in the index for each lane."""
    start = _next_lane(queue.c.webhook_id > _BEHIND).scalar_subquery().label("webhook_id")
    before = sa.select(start).cte("lane", recursive=True)
    after = _next_lane(queue.c.webhook_id > before.c.webhook_id).correlate(before)
    lane = before.union_all(
        sa.select(after.scalar_subquery()).where(before.c.webhook_id.is_not(None))
    )
    found = sa.select(lane.c.webhook_id).where(lane.c.webhook_id.is_not(None))
    return found.limit(sa.literal_column(str(LANES_LOOKED_AT)))


LANES = Prepared(_lanes())


def _due_in(lane: sa.ColumnElement[Any], state: DeliveryStatus) -> sa.Select[Any]:
    is_in_state = queue.c.state == sa.literal_column(f"'{state}'")
    due = sa.select(*DUE).where(
        WAITING, queue.c.webhook_id == lane, is_in_state, queue.c.due_at <= _NOW
    )
    return due.order_by(queue.c.due_at).limit(_MOST)


def _due_in_all(state: DeliveryStatus) -> sa.Select[Any]:
    due = _due_in(lanes.c.webhook_id, state).correlate(lanes)
    locked = due.with_for_update(skip_locked=True).lateral("due")
    held = sa.select(locked).select_from(lanes).join(locked, sa.true())
    return held.where(Among(lanes.c.webhook_id, "lanes"))


DUE_IN_ONE = {state: Prepared(_due_in(sa.bindparam("lane", type_=Id), state)) for state in STATES}
DUE_IN_ALL = {state: Prepared(_due_in_all(state)) for state in STATES}

FACTS = Prepared(
    sa.select(events.c.id, events.c.body, projects.c.access_expires_at, projects.c.deleted_at)
    .select_from(
        events.outerjoin(
            projects,
            sa.and_(
                projects.c.account_id == events.c.account_id, projects.c.id == events.c.project_id
            ),
        )
    )
    .where(Pairs((events.c.account_id, events.c.id), "accounts", "events"))
)
