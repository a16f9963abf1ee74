"""Deliveries that were leased to a worker when they were booked: read without a claim."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.claim_statements import DUE
from cuepost.adapters.storage.records.claims import Due, Fact, assignment_of, stopped_by
from cuepost.adapters.storage.records.delivery_pages import lowest_of
from cuepost.adapters.storage.records.targets import load_targets
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import AmongPairs, Prepared
from cuepost.adapters.storage.tables import accounts, events, projects, queue
from cuepost.adapters.storage.types import Id
from cuepost.ports.dispatch import Assignment, DeliveryKey


def _leased(among: AmongPairs) -> sa.Select[tuple[object, ...]]:
    """The bounds tell PostgreSQL in which partitions the events are."""
    found = queue.join(accounts, accounts.c.number == queue.c.account)
    found = found.join(
        events,
        sa.and_(
            events.c.account == queue.c.account,
            events.c.id == queue.c.event_id,
            events.c.id.between(
                sa.bindparam("lowest", type_=Id), sa.bindparam("highest", type_=Id)
            ),
        ),
    )
    found = found.outerjoin(
        projects,
        sa.and_(projects.c.account_id == accounts.c.id, projects.c.id == queue.c.project_id),
    )
    facts = (events.c.body, projects.c.access_expires_at, projects.c.deleted_at)
    return (
        sa.select(*DUE, *facts, queue.c.stop_reason)
        .select_from(found)
        .where(
            among((queue.c.account, queue.c.id), "accounts", "deliveries"),
            queue.c.worker == sa.bindparam("worker", type_=Id),
        )
    )


_LEASED = Prepared(_leased)


async def handed_over(
    session: Session, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
) -> list[tuple[Assignment, bool]]:
    """Each with whether it may be sent: it may have been stopped since it was booked."""
    ids = [delivery_id for _, delivery_id in keys]
    rows = await session.fetch(
        _LEASED,
        worker=worker,
        accounts=[account for account, _ in keys],
        deliveries=ids,
        # An event has the millisecond of its deliveries, and a lower id.
        lowest=lowest_of(min(ids)),
        highest=max(ids),
    )
    due = [Due._make(row[: len(DUE)]) for row in rows]
    targets = await load_targets(session, {each.endpoint for each in due}, now)
    found: list[tuple[Assignment, bool]] = []
    for each, row in zip(due, rows, strict=True):
        *facts, stop_reason = row[len(DUE) :]
        fact, target = Fact._make(facts), targets.get(each.endpoint)
        if target is not None:
            is_stopped = stop_reason is not None or stopped_by(fact, now) is not None
            found.append((assignment_of(each, fact, target), not is_stopped))
    return found
