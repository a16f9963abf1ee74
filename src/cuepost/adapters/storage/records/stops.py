"""Stopping deliveries: those that wait end at once, those in flight after their attempt."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.delivery_pages import LIVE_OF_EVENTS, bounds_of_events
from cuepost.adapters.storage.records.delivery_rows import KEPT
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import IN_FLIGHT, WAITING, deliveries, events, projects, queue
from cuepost.adapters.storage.tables.history import CANCEL_REASON, STATUS
from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.delivery import CancelReason, DeliveryStatus

STOPPED_AT_ONCE = 1_000
_OF_ACCOUNT = queue.c.account == sa.bindparam("account", type_=sa.Integer)
_REASON = sa.bindparam("why", type_=CANCEL_REASON)
_AT = sa.bindparam("at", type_=Instant)


@dataclass(frozen=True, slots=True)
class Stop:
    """All of an account's deliveries, those of one of its endpoints, or some by their ids."""

    lock: Prepared
    mark: Prepared
    some: Prepared


def _stop_of(*chosen: sa.ColumnElement[bool]) -> Stop:
    waiting = sa.and_(WAITING, _OF_ACCOUNT, *chosen)
    in_flight = sa.and_(IN_FLIGHT, _OF_ACCOUNT, *chosen)
    both = sa.select(queue.c.id).where(sa.or_(waiting, in_flight))
    locked = both.order_by(queue.c.id).with_for_update().subquery()
    some = sa.select(queue.c.id).where(waiting)
    return Stop(
        lock=Prepared(sa.select(sa.func.count()).select_from(locked)),
        mark=Prepared(sa.update(queue).where(in_flight).values(stop_reason=_REASON)),
        some=Prepared(some.limit(sa.literal_column(str(STOPPED_AT_ONCE)))),
    )


OF_ACCOUNT = _stop_of()
OF_ENDPOINT = _stop_of(queue.c.endpoint == sa.bindparam("endpoint", type_=sa.Integer))
_THESE = _stop_of(Among(queue.c.id, "ids"))
_CANCEL = Prepared(
    sa.insert(deliveries).from_select(
        [*KEPT, "status", "reason", "finished_at"],
        sa.select(
            *(queue.c[name] for name in KEPT),
            STATUS.literal(DeliveryStatus.CANCELLED),
            _REASON,
            _AT,
        ).where(_OF_ACCOUNT, Among(queue.c.id, "ids")),
    )
)
_UNQUEUE = Prepared(sa.delete(queue).where(_OF_ACCOUNT, Among(queue.c.id, "ids")))
_EVENTS_OF_PROJECT = Prepared(
    sa.select(events.c.id).where(
        events.c.account == sa.bindparam("account", type_=sa.Integer),
        events.c.project_id == sa.bindparam("project", type_=Id),
    )
)
_ACCESS_ENDED = Prepared(
    sa.update(projects)
    .where(
        projects.c.account_id == sa.bindparam("account"),
        projects.c.id == sa.bindparam("project"),
        projects.c.access_expires_at <= _AT,
    )
    .values(access_ended_at=_AT)
    .returning(projects.c.id)
)


async def stop(
    session: Session, which: Stop, reason: CancelReason, now: datetime, **chosen: Any
) -> None:
    """`chosen` names the account, and the endpoint or the ids."""
    session = session.unhurried
    if session.dialect == "postgresql":
        # All are locked first, in the order of ids: no worker may claim one of them meanwhile.
        await session.fetch(which.lock, **chosen)
    await session.fetch(which.mark, why=reason, **chosen)
    while rows := await session.fetch(which.some, **chosen):
        ids = [delivery_id for (delivery_id,) in rows]
        await cancel(session, chosen["account"], ids, reason, now)


async def cancel(
    session: Session, account: int, ids: Sequence[UUID], reason: CancelReason, now: datetime
) -> None:
    """These end now, whether or not somebody is sending them."""
    await session.fetch(_CANCEL, account=account, ids=ids, why=reason, at=now)
    await session.fetch(_UNQUEUE, account=account, ids=ids)


async def stop_project(
    session: Session, account: int, project_id: UUID, reason: CancelReason, now: datetime
) -> None:
    ids = await _live_of_project(session.unhurried, account, project_id)
    if ids:
        await stop(session, _THESE, reason, now, account=account, ids=ids)


async def access_ended(session: Session, account_id: UUID, project_id: UUID, now: datetime) -> bool:
    """Note it down; False when the access window was extended meanwhile.

    It comes first, because it waits for whoever is reporting of the project right now.
    """
    noted = await session.fetch(_ACCESS_ENDED, account=account_id, project=project_id, at=now)
    return bool(noted)


async def _live_of_project(session: Session, account: int, project_id: UUID) -> Sequence[UUID]:
    """By its events, of which there are few."""
    found = await session.fetch(_EVENTS_OF_PROJECT, account=account, project=project_id)
    event_ids = [event_id for (event_id,) in found]
    if not event_ids:
        return []
    live = await session.fetch(
        LIVE_OF_EVENTS[session.dialect], account=account, **bounds_of_events(event_ids)
    )
    return [delivery_id for delivery_id, *_ in live]
