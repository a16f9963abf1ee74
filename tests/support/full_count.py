"""Counts of deliveries, counted again from the history and compared with those that are kept."""

from collections import Counter

import sqlalchemy as sa

from cuepost.adapters.storage.records.counts import COUNTED
from cuepost.adapters.storage.tables import attempts, deliveries, delivery_counts, endpoints, queue
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import (
    FINE_MINUTES,
    HOUR_MINUTES,
    class_of,
    interval_of,
    latency_bin,
)
from cuepost.domain.instants import from_millis, instant_of, to_millis
from tests.support.store_rows import AnyStore, rows

Counted = Counter[tuple[object, ...]]


async def kept(store: AnyStore) -> Counted:
    """By endpoint, length of the interval, its beginning and what is counted; without zeros."""
    found: Counted = Counter()
    for row in await rows(store, sa.select(delivery_counts).where(_of_present(delivery_counts))):
        for name in COUNTED:
            if count := getattr(row, name):
                found[row.endpoint, row.minutes, row.since, name] = count
    return found


async def full_count(store: AnyStore) -> Counted:
    """The same, from deliveries and attempts themselves."""
    found: Counted = Counter()
    for row in await rows(store, sa.select(deliveries).where(_of_present(deliveries))):
        _count(found, row.endpoint, row.id, row.status.value)
        if row.status is DeliveryStatus.CANCELLED and row.attempt_count:
            _count(found, row.endpoint, row.id, "abandoned")
        _count_attempt(found, row.endpoint, row.id, row)
    for table in (deliveries, queue):
        joined = sa.select(table.c.endpoint, attempts).join_from(
            attempts,
            table,
            sa.and_(table.c.account == attempts.c.account, table.c.id == attempts.c.delivery_id),
        )
        for row in await rows(store, joined.where(_of_present(table))):
            _count_attempt(found, row.endpoint, row.delivery_id, row)
    return found


def _of_present(table: sa.Table) -> sa.ColumnElement[bool]:
    present = sa.select(endpoints.c.number).where(endpoints.c.deleted_at.is_(None))
    return table.c.endpoint.in_(present)


def _count_attempt(found: Counted, endpoint: int, delivery_id: object, row: object) -> None:
    outcome = getattr(row, "outcome")  # noqa: B009  # rows of two tables have it
    if outcome is None:
        return
    kind = class_of(outcome, row.response_status)  # type: ignore[attr-defined]
    if kind is not None:
        _count(found, endpoint, delivery_id, kind.value)
        place = latency_bin(row.duration_ms)  # type: ignore[attr-defined]
        _count(found, endpoint, delivery_id, f"latency_{place}")


def _count(found: Counted, endpoint: int, delivery_id: object, name: str) -> None:
    millis = to_millis(instant_of(delivery_id))  # type: ignore[arg-type]
    for minutes in (FINE_MINUTES, HOUR_MINUTES):
        found[endpoint, minutes, from_millis(interval_of(millis, minutes)), name] += 1
