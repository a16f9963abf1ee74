"""Stopping deliveries: those that wait end at once, those in flight after their attempt."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import IN_FLIGHT, WAITING, deliveries, projects, queue
from cuepost.adapters.storage.types import Instant
from cuepost.domain.delivery import CancelReason, DeliveryStatus

STOPPED_AT_ONCE = 1_000
_OF_ACCOUNT = queue.c.account_id == sa.bindparam("account")
_REASON = sa.bindparam("why", type_=sa.Text)
_AT = sa.bindparam("at", type_=Instant)


@dataclass(frozen=True, slots=True)
class Stop:
    """All of an account's deliveries, or those of one of its endpoints or projects."""

    lock: Prepared
    mark: Prepared
    some: Prepared


def _stop_of(chosen: sa.ColumnElement[bool]) -> Stop:
    waiting = sa.and_(WAITING, _OF_ACCOUNT, chosen)
    in_flight = sa.and_(IN_FLIGHT, _OF_ACCOUNT, chosen)
    both = sa.select(queue.c.delivery_id).where(sa.or_(waiting, in_flight))
    locked = both.order_by(queue.c.delivery_id).with_for_update().subquery()
    some = sa.select(queue.c.delivery_id).where(waiting)
    return Stop(
        lock=Prepared(sa.select(sa.func.count()).select_from(locked)),
        mark=Prepared(sa.update(queue).where(in_flight).values(stop_reason=_REASON)),
        some=Prepared(some.limit(sa.literal_column(str(STOPPED_AT_ONCE)))),
    )


OF_ACCOUNT = _stop_of(sa.true())
OF_ENDPOINT = _stop_of(queue.c.webhook_id == sa.bindparam("webhook"))
OF_PROJECT = _stop_of(
    queue.c.delivery_id.in_(
        sa.select(deliveries.c.id).where(
            deliveries.c.account_id == sa.bindparam("account"),
            deliveries.c.project_id == sa.bindparam("project"),
        )
    )
)
_CANCEL = Prepared(
    sa.update(deliveries)
    .where(deliveries.c.account_id == sa.bindparam("account"), Among(deliveries.c.id, "ids"))
    .values(
        final_status=sa.literal_column(f"'{DeliveryStatus.CANCELLED}'"),
        reason=_REASON,
        finished_at=_AT,
    )
)
_UNQUEUE = Prepared(sa.delete(queue).where(_OF_ACCOUNT, Among(queue.c.delivery_id, "ids")))
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
    session: Session, which: Stop, reason: CancelReason, now: datetime, **chosen: UUID
) -> None:
    """`chosen` names the account, and the endpoint or the project."""
    session = session.unhurried
    if session.dialect == "postgresql":
        # All are locked first, in the order of ids: no worker may claim one of them meanwhile.
        await session.fetch(which.lock, **chosen)
    await session.fetch(which.mark, why=reason, **chosen)
    account = chosen["account"]
    while rows := await session.fetch(which.some, **chosen):
        ids = [delivery_id for (delivery_id,) in rows]
        await session.fetch(_CANCEL, account=account, ids=ids, why=reason, at=now)
        await session.fetch(_UNQUEUE, account=account, ids=ids)


async def access_ended(session: Session, account_id: UUID, project_id: UUID, now: datetime) -> bool:
    """Note it down; False when the access window was extended meanwhile.

    It comes first, because it waits for whoever is reporting of the project right now.
    """
    noted = await session.fetch(_ACCESS_ENDED, account=account_id, project=project_id, at=now)
    return bool(noted)
