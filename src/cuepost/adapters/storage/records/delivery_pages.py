"""The statements that read deliveries; the cost does not depend on how deep the page is.

Live and ended deliveries are in two tables. A page reads rows from each in the order of an index,
and the caller merges them.
"""

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias
from uuid import UUID

from cuepost.adapters.quick_ids import ID_BYTES
from cuepost.adapters.storage.codes import EVENT_TYPE, STATUS
from cuepost.adapters.storage.columns import IN_FLIGHT, NOT_DELIVERED, WAITING
from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.records.paging import HIGHEST, Chosen
from cuepost.adapters.storage.session import AccountNumbers
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import FINAL, LIVE, DeliveryStatus
from cuepost.domain.instants import lowest_at
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page

Statement: TypeAlias = tuple[Sql, dict[str, Any]]
"""A statement with its values."""

# More than all workers together ever have in flight.
MOST_IN_FLIGHT = 1_000_000
LOWEST = UUID(int=0)
_BITS_IN_A_MILLISECOND = 80
_ENDED = f"SELECT {', '.join(rows.Ended._fields)} FROM deliveries"
_LIVE_COLUMNS = ", ".join(rows.Live._fields)
_LIVE = f"SELECT {_LIVE_COLUMNS} FROM queue"
# The subquery forces their own index: on a deep page SQLite would read all live deliveries.
_ALL_IN_FLIGHT = f"""
    SELECT {_LIVE_COLUMNS} FROM (
        SELECT * FROM queue WHERE account = :account AND {IN_FLIGHT} LIMIT {MOST_IN_FLIGHT}
    ) AS in_flight
"""
_ONE = "WHERE account = :account AND id = :delivery"
ONE_ENDED = Sql(f"{_ENDED} {_ONE}")
ONE_LIVE = Sql(f"{_LIVE} {_ONE}")
LOCKED_ENDED = Sql(f"{_ENDED} {_ONE} FOR UPDATE")
LOCKED_LIVE = Sql(f"{_LIVE} {_ONE} FOR UPDATE")
EVENTS_OF_PROJECT = Sql(
    """
    SELECT id FROM events
    WHERE account = :account AND project_id = :project AND id >= :lowest AND id < :end
    ORDER BY id DESC LIMIT :most
    """
)
RETRYING = Sql(
    f"""
    SELECT endpoint, count(*) AS count FROM queue
    WHERE {WAITING} AND account = :account AND endpoint IN :endpoints
        AND status = {STATUS[DeliveryStatus.RETRYING]}
    GROUP BY endpoint
    """
)


def _of_events(table: str, columns: Sequence[str]) -> Sql:
    """Deliveries have the millisecond of their event, so those of an event are in one short range
    of the key. Each millisecond is given with the account. NOT INDEXED and OFFSET 0 keep the
    planners from reading all deliveries of the account; `first` and `last` exclude partitions.
    """
    listed = ", ".join(f"found.{name}" for name in columns)
    return Sql(
        sqlite=f"""
        SELECT {listed} FROM json_each(:accounts) AS given CROSS JOIN {table} AS found NOT INDEXED
        WHERE found.account = given.value
            AND found.id >= substr(:lowest, {ID_BYTES} * given.key + 1, {ID_BYTES})
            AND found.id < substr(:ends, {ID_BYTES} * given.key + 1, {ID_BYTES})
            AND found.event_id IN :events
        """,
        postgresql=f"""
        SELECT {listed}
        FROM unnest(:accounts::integer[], :lowest::uuid[], :ends::uuid[])
            AS given (account, lowest, following)
        CROSS JOIN LATERAL (
            SELECT * FROM {table}
            WHERE account = given.account AND id >= given.lowest AND id < given.following
                AND id >= :first AND id < :last
            OFFSET 0
        ) AS found
        WHERE found.event_id IN :events
        """,
    )


ENDED_OF_EVENTS = _of_events("deliveries", rows.Ended._fields)
LIVE_OF_EVENTS = _of_events("queue", rows.Live._fields)


def _waiting_as(status: DeliveryStatus) -> str:
    return f"{WAITING} AND status = {STATUS[status]}"


def ended_pages(numbers: AccountNumbers, chosen: DeliveryFilter, page: Page) -> Iterator[Statement]:
    """The newest of each requested status, or of all if one index has them in order."""
    if chosen.status in LIVE:
        return
    include_delivered = chosen.include_delivered or chosen.status is None
    for status in _statuses(chosen, FINAL):
        some = _filtered(numbers, chosen, page)
        if status is not None:
            some.where(rows.ended_condition(status, include_delivered=include_delivered))
        if status not in (None, DeliveryStatus.DELIVERED) and chosen.webhook_id is None:
            some.where(NOT_DELIVERED)
        yield some.newest_first(_ENDED, page.limit), some.values


def live_pages(numbers: AccountNumbers, chosen: DeliveryFilter, page: Page) -> Iterator[Statement]:
    if chosen.status in FINAL:
        return
    for status in _statuses(chosen, LIVE):
        some = _filtered(numbers, chosen, page)
        is_in_flight = status is DeliveryStatus.DELIVERING
        if status is not None and not is_in_flight:
            some.where(_waiting_as(status))
        yield some.newest_first(_ALL_IN_FLIGHT if is_in_flight else _LIVE, page.limit), some.values


def bounds_of(chosen: DeliveryFilter, page: Page) -> tuple[UUID, UUID]:
    """The first id and the end of the range, from all conditions on time."""
    lowest = [LOWEST] + ([lowest_at(chosen.since)] if chosen.since else [])
    ends = [page.before or HIGHEST] + ([lowest_at(chosen.until)] if chosen.until else [])
    if chosen.event_id is not None:
        lowest.append(lowest_of(chosen.event_id))
        ends.append(end_of(chosen.event_id))
    return max(lowest), min(ends)


def lowest_of(event_id: UUID) -> UUID:
    """The lowest possible id of its deliveries, which have the millisecond of their event."""
    return UUID(int=event_id.int >> _BITS_IN_A_MILLISECOND << _BITS_IN_A_MILLISECOND)


def end_of(event_id: UUID) -> UUID:
    """The end of the range that has all deliveries of the event."""
    following = (event_id.int >> _BITS_IN_A_MILLISECOND) + 1
    return UUID(int=min(following << _BITS_IN_A_MILLISECOND, HIGHEST.int))


def of_events(account: int, event_ids: Sequence[UUID]) -> dict[str, Any]:
    """Parameters of `ENDED_OF_EVENTS` and `LIVE_OF_EVENTS`."""
    ends = {lowest_of(each): end_of(each) for each in event_ids}
    return {
        "accounts": [account] * len(ends),
        "lowest": list(ends),
        "ends": list(ends.values()),
        "first": min(ends),
        "last": max(ends.values()),
        "events": event_ids,
    }


def _statuses(
    chosen: DeliveryFilter, those: Sequence[DeliveryStatus]
) -> Sequence[DeliveryStatus | None]:
    """None stands for all statuses in one statement."""
    return those if chosen.status is None and chosen.webhook_id is not None else [chosen.status]


def _filtered(numbers: AccountNumbers, chosen: DeliveryFilter, page: Page) -> Chosen:
    query = Chosen("account = :account", account=numbers.account)
    if chosen.event_type is not None:
        query.where("event_type = :type", type=EVENT_TYPE[chosen.event_type])
    if chosen.project_id is not None:
        query.where("project_id = :project", project=chosen.project_id)
    if chosen.event_id is not None:
        query.where("event_id = :event", event=chosen.event_id)
    if chosen.webhook_id is not None:
        query.where("endpoint = :endpoint", endpoint=numbers.endpoint(chosen.webhook_id))
    elif numbers.deleted:
        query.where("endpoint NOT IN :deleted", deleted=numbers.deleted)
    # Bounds that exclude nothing are omitted, so that there are few different statements.
    lowest, end = bounds_of(chosen, page)
    query.between("id", lowest if lowest != LOWEST else None, end if end != HIGHEST else None)
    return query
