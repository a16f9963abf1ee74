"""The statements that read deliveries; each costs the same however deep its page lies."""

from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import (
    IN_FLIGHT,
    UNDELIVERED,
    WAITING,
    deliveries,
    endpoints,
    queue,
)
from cuepost.adapters.storage.types import Id
from cuepost.domain.delivery import LIVE, DeliveryStatus
from cuepost.domain.ids import instant_of, lowest_at
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page


class Row(NamedTuple):
    """A row of `deliveries`."""

    account_id: UUID
    id: UUID
    webhook_id: UUID
    event_id: UUID
    event_type: str
    project_id: UUID | None
    trigger: str
    final_status: str | None
    reason: str | None
    attempt_count: int
    budget: int
    finished_at: datetime | None
    delivered_at: datetime | None


class Queued(NamedTuple):
    """What the queue knows of a delivery that is not ended."""

    delivery_id: UUID
    state: str
    due_at: datetime


def visible(account_id: Any) -> sa.Select[Any]:
    """All but those of endpoints that are deleted and not yet cleared away."""
    deleted = sa.select(endpoints.c.id).where(
        endpoints.c.account_id == account_id, endpoints.c.deleted_at.is_not(None)
    )
    return sa.select(deliveries).where(
        deliveries.c.account_id == account_id, deliveries.c.webhook_id.not_in(deleted)
    )


_ACCOUNT = sa.bindparam("account", type_=Id)
_QUEUED = sa.select(*(queue.c[name] for name in Queued._fields))
_ONE = visible(_ACCOUNT).where(deliveries.c.id == sa.bindparam("delivery"))
ONE = Prepared(_ONE)
LOCKED = Prepared(_ONE.with_for_update(of=deliveries))
LISTED = Prepared(
    visible(_ACCOUNT).where(Among(deliveries.c.id, "ids")).order_by(deliveries.c.id.desc())
)
OF_EVENTS = Prepared(
    visible(_ACCOUNT)
    .where(
        Among(deliveries.c.event_id, "events"),
        deliveries.c.id >= sa.bindparam("lowest", type_=Id),
    )
    .order_by(deliveries.c.id)
)
QUEUED = Prepared(_QUEUED.where(queue.c.account_id == _ACCOUNT, Among(queue.c.delivery_id, "ids")))
RETRYING = Prepared(
    sa.select(queue.c.webhook_id, sa.func.count())
    .where(
        WAITING,
        queue.c.account_id == _ACCOUNT,
        Among(queue.c.webhook_id, "webhooks"),
        queue.c.state == sa.literal_column(f"'{DeliveryStatus.RETRYING}'"),
    )
    .group_by(queue.c.webhook_id)
)
OUTLINES = Prepared(
    sa.select(deliveries.c.id, deliveries.c.final_status)
    .where(
        deliveries.c.account_id == sa.bindparam("account"),
        deliveries.c.webhook_id == sa.bindparam("webhook"),
        deliveries.c.id >= sa.bindparam("lowest", type_=Id),
    )
    .order_by(deliveries.c.id.desc())
    .limit(sa.bindparam("most", type_=sa.Integer))
    # Spelled out, because for SQLite it would become one more parameter.
    .offset(sa.literal_column("0"))
)


def page_of(account_id: UUID, chosen: DeliveryFilter, page: Page) -> sa.Select[Any]:
    statement = visible(account_id)
    for column, value in (
        (deliveries.c.event_type, chosen.event_type),
        (deliveries.c.project_id, chosen.project_id),
        (deliveries.c.event_id, chosen.event_id),
    ):
        if value is not None:
            statement = statement.where(column == value)
    if chosen.event_id is not None:
        statement = statement.where(deliveries.c.id >= lowest_of(chosen.event_id))
    if chosen.webhook_id is not None:
        statement = statement.where(deliveries.c.webhook_id == chosen.webhook_id)
    if chosen.status in LIVE:
        statement = statement.where(deliveries.c.final_status.is_(None), _waits(chosen.status))
    elif chosen.status is not None:
        statement = statement.where(
            ended_as(chosen.status, include_delivered=chosen.include_delivered)
        )
    return newest_first(statement, deliveries.c.id, page, chosen.since, chosen.until)


def ended_as(status: DeliveryStatus, *, include_delivered: bool) -> sa.ColumnElement[bool]:
    """Failed ones without those that were delivered before, unless these are asked for."""
    if status is DeliveryStatus.FAILED and not include_delivered:
        return UNDELIVERED
    return deliveries.c.final_status == status


def queued_page(account_id: UUID, chosen: DeliveryFilter, page: Page) -> sa.Select[Any]:
    """The queue leads: it is small, and has what it needs in the right order."""
    assert chosen.status is not None
    statement = _QUEUED.where(queue.c.account_id == account_id, _in_state(chosen.status))
    if chosen.webhook_id is not None:
        statement = statement.where(queue.c.webhook_id == chosen.webhook_id)
    if chosen.event_id is not None:
        statement = statement.where(queue.c.event_id == chosen.event_id)
    return newest_first(statement, queue.c.delivery_id, page, chosen.since, chosen.until)


def _in_state(state: DeliveryStatus) -> sa.ColumnElement[bool]:
    which = IN_FLIGHT if state is DeliveryStatus.DELIVERING else WAITING
    return sa.and_(which, queue.c.state == state)


def _waits(state: DeliveryStatus) -> sa.ColumnElement[bool]:
    return sa.exists().where(
        queue.c.account_id == deliveries.c.account_id,
        queue.c.delivery_id == deliveries.c.id,
        queue.c.state == state,
    )


def lowest_of(event_id: UUID) -> UUID:
    """No delivery is older than its event; older partitions need not be looked at."""
    return lowest_at(instant_of(event_id))
