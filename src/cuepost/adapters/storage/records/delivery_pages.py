"""The statements that read deliveries; each costs the same however deep its page lies.

Live and ended deliveries are in two tables. A page takes from each what it needs in the order of an
index, and what is found is put in order afterwards.
"""

from collections.abc import Iterator, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.quick_ids import ID_BYTES
from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.records.numbers import AccountNumbers
from cuepost.adapters.storage.records.paging import HIGHEST, between
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import (
    IN_FLIGHT,
    NOT_DELIVERED,
    WAITING,
    deliveries,
    events,
    queue,
)
from cuepost.adapters.storage.tables.history import STATUS
from cuepost.adapters.storage.types import Id, Ids
from cuepost.domain.delivery import FINAL, LIVE, DeliveryStatus
from cuepost.domain.ids import lowest_at
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page

# More than all workers together ever send at a time.
MOST_IN_FLIGHT = 1_000_000
LOWEST = UUID(int=0)
_BITS_IN_A_MILLISECOND = 80
_ACCOUNT = sa.bindparam("account", type_=sa.Integer)
_DELIVERY = sa.bindparam("delivery", type_=Id)
_ENDED = sa.select(*rows.ENDED).where(deliveries.c.account == _ACCOUNT)
_LIVE = sa.select(*rows.LIVE).where(queue.c.account == _ACCOUNT)
_ONE_ENDED = _ENDED.where(deliveries.c.id == _DELIVERY)
_ONE_LIVE = _LIVE.where(queue.c.id == _DELIVERY)
ONE_ENDED = Prepared(_ONE_ENDED)
ONE_LIVE = Prepared(_ONE_LIVE)
LOCKED_ENDED = Prepared(_ONE_ENDED.with_for_update())
LOCKED_LIVE = Prepared(_ONE_LIVE.with_for_update())
_LOWEST = sa.bindparam("lowest", type_=Id)
ENDED_OF_EVENTS = Prepared(
    _ENDED.where(
        Among(deliveries.c.event_id, "events"),
        deliveries.c.id >= _LOWEST,
        deliveries.c.id < sa.bindparam("end", type_=Id),
    )
)


def _live_of_events(sql: str) -> Prepared:
    """By their events, each of which comes with the bounds of its millisecond."""
    given = [sa.bindparam(name, type_=Ids()) for name in ("events", "lowest", "ends")]
    columns = [sa.column(each.name, each.type) for each in rows.LIVE]
    return Prepared(sa.text(sql).bindparams(_ACCOUNT, *given).columns(*columns))


_LIVE_COLUMNS = ", ".join(f"queue.{column.name}" for column in rows.LIVE)
# Deliveries have the millisecond of their event, so those of each event are in one short range of
# the key, however long the queue is. Rows are compared as a whole and the range has an offset,
# because the planners would otherwise read all live deliveries of the account.
LIVE_OF_EVENTS = {
    "sqlite": _live_of_events(
        f"""
        WITH RECURSIVE place(n) AS (
            VALUES (0) UNION ALL
            SELECT n + {ID_BYTES} FROM place WHERE n + {ID_BYTES} < length(:events)
        )
        SELECT {_LIVE_COLUMNS} FROM place CROSS JOIN queue
        WHERE (account, id) >= (:account, substr(:lowest, n + 1, {ID_BYTES}))
            AND (account, id) < (:account, substr(:ends, n + 1, {ID_BYTES}))
            AND queue.event_id = substr(:events, n + 1, {ID_BYTES})
        """
    ),
    "postgresql": _live_of_events(
        f"""
        SELECT {_LIVE_COLUMNS}
        FROM unnest(:events, :lowest, :ends) AS given (event_id, lowest, following)
        CROSS JOIN LATERAL (
            SELECT * FROM queue
            WHERE account = :account AND id >= given.lowest AND id < given.following
            OFFSET 0
        ) AS queue
        WHERE queue.event_id = given.event_id
        """
    ),
}
EVENTS_OF_PROJECT = Prepared(
    sa.select(events.c.id)
    .where(
        events.c.account == _ACCOUNT,
        events.c.project_id == sa.bindparam("project", type_=Id),
        events.c.id >= _LOWEST,
        events.c.id < sa.bindparam("end", type_=Id),
    )
    .order_by(events.c.id.desc())
    .limit(sa.bindparam("most", type_=sa.Integer))
    # Spelled out, because for SQLite it would become one more parameter.
    .offset(sa.literal_column("0"))
)
RETRYING = Prepared(
    sa.select(queue.c.endpoint, sa.func.count())
    .where(
        WAITING,
        queue.c.account == _ACCOUNT,
        Among(queue.c.endpoint, "endpoints"),
        queue.c.status == STATUS.literal(DeliveryStatus.RETRYING),
    )
    .group_by(queue.c.endpoint)
)


def _outlines(table: sa.Table, *chosen: sa.ColumnElement[bool]) -> sa.Select[Any]:
    return (
        sa.select(table.c.id, table.c.status)
        .where(
            table.c.account == _ACCOUNT,
            table.c.endpoint == sa.bindparam("endpoint", type_=sa.Integer),
            table.c.id >= _LOWEST,
            *chosen,
        )
        .order_by(table.c.id.desc())
        .limit(sa.bindparam("most", type_=sa.Integer))
        # Spelled out, because for SQLite it would become one more parameter.
        .offset(sa.literal_column("0"))
    )


# Each status has an index range of its own, which is in the order of ids.
OUTLINES = (
    *(
        Prepared(_outlines(deliveries, deliveries.c.status == STATUS.literal(status)))
        for status in FINAL
    ),
    *(
        Prepared(_outlines(queue, WAITING, queue.c.status == STATUS.literal(status)))
        for status in LIVE
        if status is not DeliveryStatus.DELIVERING
    ),
    Prepared(_outlines(queue, IN_FLIGHT)),
)


def ended_pages(
    numbers: AccountNumbers, chosen: DeliveryFilter, page: Page
) -> Iterator[sa.Select[Any]]:
    """The newest of each status that was asked for, or of all where one index has them in order."""
    statement = sa.select(*rows.ENDED).where(deliveries.c.account == numbers.account)
    statement = _filtered(statement, deliveries, numbers, chosen)
    if chosen.status in LIVE:
        return
    statuses: Sequence[DeliveryStatus | None] = [chosen.status]
    if chosen.status is None and chosen.webhook_id is not None:
        statuses = FINAL
    include_delivered = chosen.include_delivered or chosen.status is None
    for status in statuses:
        some = statement
        if status is not None:
            some = some.where(ended_as(status, include_delivered=include_delivered))
        if status not in (None, DeliveryStatus.DELIVERED) and chosen.webhook_id is None:
            some = some.where(NOT_DELIVERED)
        yield _newest_first(some, deliveries.c.id, chosen, page)


def live_pages(
    numbers: AccountNumbers, chosen: DeliveryFilter, page: Page
) -> Iterator[sa.Select[Any]]:
    if chosen.status in FINAL:
        return
    statuses: Sequence[DeliveryStatus | None] = [chosen.status]
    if chosen.status is None and chosen.webhook_id is not None:
        statuses = LIVE
    for status in statuses:
        live = _live_as(status, numbers.account)
        some = _filtered(
            sa.select(*(live.c[name] for name in rows.Live._fields)), live, numbers, chosen
        )
        yield _newest_first(some, live.c.id, chosen, page)


def ended_as(status: DeliveryStatus, *, include_delivered: bool) -> sa.ColumnElement[bool]:
    """Failed ones without those that were delivered before, unless these are asked for."""
    is_it = deliveries.c.status == STATUS.literal(status)
    if status is DeliveryStatus.FAILED and not include_delivered:
        return sa.and_(is_it, deliveries.c.delivered_at.is_(None))
    return is_it


def bounds_of(chosen: DeliveryFilter, page: Page) -> tuple[UUID, UUID]:
    """From the first id up to the end, by all that says something of time."""
    lowest = [LOWEST] + ([lowest_at(chosen.since)] if chosen.since else [])
    ends = [page.before or HIGHEST] + ([lowest_at(chosen.until)] if chosen.until else [])
    if chosen.event_id is not None:
        lowest.append(lowest_of(chosen.event_id))
        ends.append(end_of(chosen.event_id))
    return max(lowest), min(ends)


def lowest_of(event_id: UUID) -> UUID:
    """Deliveries have the millisecond of their event: none of them is older."""
    return UUID(int=event_id.int >> _BITS_IN_A_MILLISECOND << _BITS_IN_A_MILLISECOND)


def end_of(event_id: UUID) -> UUID:
    """All deliveries of the event come before it."""
    following = (event_id.int >> _BITS_IN_A_MILLISECOND) + 1
    return UUID(int=min(following << _BITS_IN_A_MILLISECOND, HIGHEST.int))


def bounds_of_events(event_ids: Sequence[UUID]) -> dict[str, Sequence[UUID]]:
    """Parameters of `LIVE_OF_EVENTS`."""
    return {
        "events": event_ids,
        "lowest": [lowest_of(each) for each in event_ids],
        "ends": [end_of(each) for each in event_ids],
    }


def _newest_first(
    statement: sa.Select[Any],
    identifier: sa.ColumnElement[Any],
    chosen: DeliveryFilter,
    page: Page,
) -> sa.Select[Any]:
    """Bounds that leave out nothing are left out, so that all pages have few plans."""
    lowest, end = bounds_of(chosen, page)
    bounds = lowest if lowest != LOWEST else None, end if end != HIGHEST else None
    chosen_rows = between(statement, identifier, *bounds)
    return chosen_rows.order_by(identifier.desc()).limit(page.limit)


def _filtered(
    statement: sa.Select[Any], table: sa.FromClause, numbers: AccountNumbers, chosen: DeliveryFilter
) -> sa.Select[Any]:
    if chosen.event_type is not None:
        statement = statement.where(table.c.event_type == chosen.event_type)
    if chosen.project_id is not None:
        statement = statement.where(table.c.project_id == chosen.project_id)
    if chosen.event_id is not None:
        statement = statement.where(table.c.event_id == chosen.event_id)
    if chosen.webhook_id is not None:
        return statement.where(table.c.endpoint == numbers.endpoint(chosen.webhook_id))
    if numbers.deleted:
        return statement.where(table.c.endpoint.not_in(numbers.deleted))
    return statement


def _live_as(status: DeliveryStatus | None, account: int) -> sa.FromClause:
    its = sa.select(queue).where(queue.c.account == account)
    if status is DeliveryStatus.DELIVERING:
        # Found by their own index alone: on a deep page SQLite would go through all that is live.
        return its.where(IN_FLIGHT).limit(sa.literal_column(str(MOST_IN_FLIGHT))).subquery()
    if status is not None:
        its = its.where(WAITING, queue.c.status == STATUS.literal(status))
    return its.subquery()
