"""Deliveries with their attempts, put together from the rows of all tables that hold them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.domain.instants import to_millis
from tests.support.history_facts import StoredAttempt, StoredDelivery

STORED = (tables.attempts, tables.queue, tables.deliveries, tables.endpoints)
Found = Mapping[str, Sequence[sa.Row[Any]]]


def stored_deliveries(found: Found) -> list[StoredDelivery]:
    """Of all rows of the tables in STORED, by name; a delivery that is not ended has no reason."""
    webhook_of = {row.number: row.id for row in found["endpoints"]}
    attempts: dict[UUID, list[StoredAttempt]] = defaultdict(list)
    for row in found["attempts"]:
        attempts[row.delivery_id].append(_attempt(row))
    for row in found["deliveries"]:
        if row.number is not None:
            attempts[row.id].append(_attempt(row))
    return [
        StoredDelivery(
            str(row.id),
            str(webhook_of[row.endpoint]),
            str(row.event_id),
            row.status,
            reason,
            tuple(attempts[row.id]),
        )
        for row, reason in (
            *((row, None) for row in found["queue"]),
            *((row, row.reason) for row in found["deliveries"]),
        )
    ]


def _attempt(row: sa.Row[Any]) -> StoredAttempt:
    started_at = to_millis(row.started_at) / 1000
    return StoredAttempt(row.budget, row.number, row.outcome, started_at, row.duration_ms)
