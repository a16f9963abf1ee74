"""Holds the promises against what a scenario did; only after that its figures count."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import sqlalchemy as sa

from benchmarks.furnishing import pieces
from cuepost.adapters.storage.tables import attempts, deliveries, queue
from cuepost.domain.ids import lowest_at
from cuepost.domain.instants import to_millis
from tests.faults.world import asked
from tests.support.history_checker import History, Seen, StoredAttempt, StoredDelivery
from tests.support.store_rows import AnyStore, rows, snapshot_rows

PATIENCE_SECONDS = 180.0
# Longer than a feed takes; beside a long history a look at all of it would cost what is measured.
RECENT = timedelta(minutes=5)


def wait_until_settled(settings: Mapping[str, str], accounts: Sequence[UUID]) -> None:
    """Until every delivery of these accounts has its final status."""
    deadline = time.monotonic() + PATIENCE_SECONDS

    async def settled(store: AnyStore) -> None:
        while await _has_live(store, accounts):
            assert time.monotonic() < deadline, "not everything was sent and written down"
            await asyncio.sleep(0.05)

    asyncio.run(asked(settings, settled))


async def _has_live(store: AnyStore, accounts: Sequence[UUID]) -> bool:
    """In the queue, or out of it and without a result; the latter of recent ones alone."""
    queued = sa.select(queue.c.delivery_id)
    recent = lowest_at(datetime.now(UTC) - RECENT)
    unfinished = sa.select(deliveries.c.id).where(
        deliveries.c.id >= recent, deliveries.c.final_status.is_(None)
    )
    for chosen, account in (
        (queued, queue.c.account_id),
        (unfinished, deliveries.c.account_id),
    ):
        for some in pieces(accounts):
            if await snapshot_rows(store, chosen.where(account.in_(some)).limit(1)):
                return True
    return False


def stored_since(
    settings: Mapping[str, str], accounts: Sequence[UUID], since: float
) -> list[StoredDelivery]:
    """What the store says of the deliveries that were made after that instant."""
    lowest = lowest_at(datetime.fromtimestamp(since, UTC))

    async def found(store: AnyStore) -> list[StoredDelivery]:
        return [
            each for some in pieces(accounts) for each in await _of_accounts(store, some, lowest)
        ]

    return asyncio.run(asked(settings, found))


async def _of_accounts(
    store: AnyStore, accounts: Sequence[UUID], lowest: UUID
) -> list[StoredDelivery]:
    made: dict[object, list[StoredAttempt]] = {}
    of_attempts = (attempts.c.account_id.in_(accounts), attempts.c.delivery_id >= lowest)
    for row in await rows(store, sa.select(attempts).where(*of_attempts)):
        started = to_millis(row.started_at) / 1000
        made.setdefault(row.delivery_id, []).append(
            StoredAttempt(row.budget, row.number, row.outcome, started, row.duration_ms)
        )
    chosen = (deliveries.c.account_id.in_(accounts), deliveries.c.id >= lowest)
    return [
        StoredDelivery(
            str(row.id),
            str(row.webhook_id),
            str(row.event_id),
            row.final_status or "unfinished",
            row.reason,
            tuple(made.get(row.id, ())),
        )
        for row in await rows(store, sa.select(deliveries).where(*chosen))
    ]


def require_kept(history: History) -> None:
    """Every promise, and since every receiver here answers 200, everything delivered."""
    broken = history.broken_promises()
    assert broken == [], broken[:5]
    assert history.acknowledged, "nothing was acknowledged, so nothing is proved"
    assert {each.status for each in history.deliveries} == {"delivered"}


def require_all_seen(sent: set[str], seen: Sequence[Seen], webhook_id: str, secret: str) -> None:
    """For senders that keep no history: all that they took came, unaltered and well signed."""
    delivered = [StoredDelivery(each, webhook_id, each, "delivered", None, ()) for each in sent]
    secrets = {webhook_id: [secret]}
    require_kept(History(set(sent), list(seen), delivered, secrets, keeps_attempts=False))


def require_no_stall(said: str) -> None:
    """`said` is what a service wrote to its standard error."""
    assert "event=engine_stalled" not in said, said[-2_000:]
