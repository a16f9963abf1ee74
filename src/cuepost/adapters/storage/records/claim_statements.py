"""The statements of a claim, written once for each engine."""

from typing import Any

import sqlalchemy as sa

from cuepost.adapters.storage.statements import Among, Pairs, Prepared
from cuepost.adapters.storage.tables import WAITING, accounts, events, lanes, projects, queue
from cuepost.adapters.storage.tables.history import STATUS
from cuepost.adapters.storage.types import Id, Ids, Instant, Ints
from cuepost.domain.delivery import DeliveryStatus

EARLIEST_LOOKED_AT = 32
LANES_LOOKED_AT = 64
STATES = (DeliveryStatus.PENDING, DeliveryStatus.RETRYING)
DUE = (
    queue.c.account,
    queue.c.id,
    queue.c.endpoint,
    queue.c.event_id,
    queue.c.status,
    queue.c.due_at,
    queue.c.trigger,
    queue.c.budget,
    queue.c.attempts_made,
    queue.c.attempt_count,
    queue.c.event_type,
    queue.c.project_id,
    queue.c.delivered_at,
)
_NOW = sa.bindparam("now", type_=Instant)
_WORKER = sa.bindparam("worker", type_=Id)
_BEHIND = sa.bindparam("behind", type_=sa.Integer)
# A parameter, and as a number: SQLAlchemy would look at its value while it writes the statement.
_MOST: Any = sa.bindparam("most", type_=sa.Integer)


def _waiting(is_chosen: sa.ColumnElement[bool], most: int) -> sa.Select[Any]:
    some = sa.select(queue.c.endpoint, queue.c.due_at).where(WAITING, is_chosen)
    first = some.order_by(queue.c.due_at).limit(sa.literal_column(str(most))).subquery()
    # By lane, because what has been due for longest may all be of one.
    earliest = sa.select(first.c.endpoint, sa.func.min(first.c.due_at), sa.func.count())
    return earliest.group_by(first.c.endpoint)


# The lanes of what has been due for longest, with how many are theirs; then what is due next.
EARLIEST = Prepared(
    _waiting(queue.c.due_at <= _NOW, EARLIEST_LOOKED_AT).union_all(
        _waiting(queue.c.due_at > _NOW, 1)
    )
)


def _next_lane(behind: sa.ColumnElement[bool]) -> sa.Select[tuple[Any]]:
    following = sa.select(queue.c.endpoint).where(WAITING, behind).order_by(queue.c.endpoint)
    return following.limit(sa.literal_column("1"))


def _lanes() -> sa.Select[tuple[Any]]:
    """The next lanes that have something waiting: one step in the index for each lane."""
    start = _next_lane(queue.c.endpoint > _BEHIND).scalar_subquery().label("endpoint")
    before = sa.select(start).cte("lane", recursive=True)
    after = _next_lane(queue.c.endpoint > before.c.endpoint).correlate(before)
    lane = before.union_all(
        sa.select(after.scalar_subquery()).where(before.c.endpoint.is_not(None))
    )
    found = sa.select(lane.c.endpoint).where(lane.c.endpoint.is_not(None))
    return found.limit(sa.literal_column(str(LANES_LOOKED_AT)))


LANES = Prepared(_lanes())


def _due_in_one(state: DeliveryStatus) -> sa.Select[Any]:
    due = sa.select(*DUE).where(
        WAITING,
        queue.c.endpoint == sa.bindparam("lane", type_=sa.Integer),
        queue.c.status == STATUS.literal(state),
        queue.c.due_at <= _NOW,
    )
    return sa.select(due.order_by(queue.c.due_at).limit(_MOST).subquery())


DUE_IN_ONE = Prepared(sa.union_all(*(_due_in_one(state) for state in STATES)))
LET_GO = Prepared(
    sa.delete(lanes).where(lanes.c.worker_id == _WORKER, Among(lanes.c.endpoint, "idle"))
)
# On SQLite alone: lanes that nobody else holds.
HOLD = Prepared(
    sa.text(
        """
        INSERT INTO lanes (endpoint, worker_id)
        SELECT value, :worker FROM json_each(:lanes) WHERE true
        ON CONFLICT (endpoint) DO UPDATE SET worker_id = excluded.worker_id
        WHERE lanes.worker_id = excluded.worker_id
        RETURNING endpoint
        """
    )
    .bindparams(_WORKER, sa.bindparam("lanes", type_=Ints()))
    .columns(endpoint=sa.Integer())
)
# On PostgreSQL in one trip: hold lanes that nobody else holds, find what is due in them, and give
# up others. Lanes are taken in the order of ids and given up last, and those of others are not
# touched, so that nobody deadlocks. Rows are compared as a whole, so that only the index of lanes
# has them in that order: beside a long backlog the planner would look for a lane's few deliveries
# among all that are due.
HOLD_AND_FIND_DUE = Prepared(
    sa.text(
        f"""
        WITH gained AS (
            INSERT INTO lanes (endpoint, worker_id)
            SELECT lane, :worker FROM unnest(:lanes) AS lane
            ON CONFLICT DO NOTHING RETURNING endpoint
        ), kept AS (
            SELECT endpoint FROM lanes
            WHERE worker_id = :worker AND endpoint = ANY (:lanes) FOR UPDATE
        ), given_up AS (
            DELETE FROM lanes WHERE worker_id = :worker AND endpoint = ANY (:idle)
        )
        SELECT held.endpoint, due.*
        FROM (SELECT * FROM gained UNION ALL SELECT * FROM kept) AS held
        CROSS JOIN (VALUES {", ".join(f"({STATUS.codes[state]})" for state in STATES)})
            AS wanted (status)
        LEFT JOIN LATERAL (
            SELECT {", ".join(column.name for column in DUE)} FROM queue
            WHERE {WAITING}
                AND (endpoint, status, due_at) >= (held.endpoint, wanted.status, '-infinity')
                AND (endpoint, status, due_at) <= (held.endpoint, wanted.status, :now)
            ORDER BY endpoint, status, due_at LIMIT :most FOR UPDATE SKIP LOCKED
        ) AS due ON true
        """
    )
    .bindparams(
        _WORKER, _NOW, _MOST, *(sa.bindparam(name, type_=Ints()) for name in ("lanes", "idle"))
    )
    .columns(sa.column("held", sa.Integer), *(sa.column(each.name, each.type) for each in DUE))
)

# On SQLite alone.
FACTS = Prepared(
    sa.select(events.c.id, events.c.body, projects.c.access_expires_at, projects.c.deleted_at)
    .select_from(
        events.join(accounts, accounts.c.number == events.c.account).outerjoin(
            projects,
            sa.and_(projects.c.account_id == accounts.c.id, projects.c.id == events.c.project_id),
        )
    )
    .where(Pairs((events.c.account, events.c.id), "accounts", "events"))
)

# On PostgreSQL the same facts, of deliveries that are leased by the way. The bounds tell it in
# which partitions to look, and nothing else; a list of one can only be looked up.
LEASE_WITH_FACTS = Prepared(
    sa.text(
        f"""
        UPDATE queue
        SET status = {STATUS.codes[DeliveryStatus.DELIVERING]}, worker = :worker
        FROM unnest(:accounts, :deliveries, :events) AS picked (account, id, event_id)
        LEFT JOIN events
            ON events.account = picked.account AND events.id = picked.event_id
            AND (events.id BETWEEN :first_event AND :last_event OR events.id = :first_event)
        LEFT JOIN accounts ON accounts.number = picked.account
        LEFT JOIN projects
            ON projects.account_id = accounts.id AND projects.id = events.project_id
        WHERE queue.account = ANY (ARRAY[picked.account])
            AND queue.id = ANY (ARRAY[picked.id])
        RETURNING events.id, events.body, projects.access_expires_at, projects.deleted_at
        """
    ).bindparams(
        _WORKER,
        sa.bindparam("accounts", type_=Ints()),
        *(sa.bindparam(name, type_=Ids()) for name in ("deliveries", "events")),
        *(sa.bindparam(name, type_=Id()) for name in ("first_event", "last_event")),
    )
)
