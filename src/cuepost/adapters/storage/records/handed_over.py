"""Deliveries that were leased to a worker when they were created: read without a claim."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from cuepost.adapters.storage.records.claim_statements import Due
from cuepost.adapters.storage.records.claims import Fact, assignment_of, stopped_by
from cuepost.adapters.storage.records.delivery_pages import lowest_of
from cuepost.adapters.storage.records.endpoints import load_targets
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import by_keys
from cuepost.ports.dispatch import Assignment, DeliveryKey

# Forces PostgreSQL to look up each row by its key. While the tables are small, it would otherwise
# choose any index that begins with the account, or the index of leases, and read all its entries
# for each delivery. The bounds limit the partitions in which events are searched.
_LEASED = by_keys(
    f"""
    SELECT {", ".join(f"queue.{name}" for name in Due._fields)},
        events.body, projects.access_expires_at, projects.deleted_at, queue.stop_reason
    FROM queue
    JOIN accounts ON accounts.number = queue.account
    JOIN events
        ON events.account == queue.account AND events.id == queue.event_id
        AND (events.id BETWEEN :lowest AND :highest OR events.id = :lowest)
    LEFT JOIN projects
        ON projects.id == queue.project_id AND (projects.account_id = accounts.id) IS TRUE
    """,
    "queue.account",
    "queue.id",
    "AND (queue.worker = :worker) IS TRUE",
)
_FACTS = len(Due._fields)


async def handed_over(
    session: StoreSession, worker: UUID, keys: Sequence[DeliveryKey], now: datetime
) -> list[tuple[Assignment, bool]]:
    """Each with whether it may be sent: it may have been stopped since it was created."""
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
    due = [Due._make(row[:_FACTS]) for row in rows]
    targets = await load_targets(session, {each.endpoint for each in due}, now)
    found: list[tuple[Assignment, bool]] = []
    for each, row in zip(due, rows, strict=True):
        *facts, stop_reason = row[_FACTS:]
        fact, target = Fact._make(facts), targets.get(each.endpoint)
        if target is not None:
            is_stopped = stop_reason is not None or stopped_by(fact, now) is not None
            found.append((assignment_of(each, fact, target), not is_stopped))
    return found
