"""Verifies the delivery guarantees after a scenario; its figures count only if they hold."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from uuid import UUID

import sqlalchemy as sa

from benchmarks.population import pieces
from cuepost.adapters.storage import tables
from cuepost.adapters.storage.tables import attempts, deliveries, queue
from cuepost.domain.instants import lowest_at
from tests.faults.harness import asked
from tests.support.history_checker import History, Seen, StoredDelivery
from tests.support.store_rows import AnyStore, snapshot_rows
from tests.support.stored_history import stored_deliveries

TIMEOUT_SECONDS = 180.0


def wait_until_settled(settings: Mapping[str, str], accounts: Sequence[UUID]) -> None:
    """Waits until every delivery of these accounts has its final status."""
    deadline = time.monotonic() + TIMEOUT_SECONDS

    async def settled(store: AnyStore) -> None:
        while await _has_live(store, accounts):
            assert time.monotonic() < deadline, "not everything was sent and written down"
            await asyncio.sleep(0.05)

    asyncio.run(asked(settings, settled))


async def _has_live(store: AnyStore, accounts: Sequence[UUID]) -> bool:
    for some in pieces(accounts):
        chosen = sa.select(queue.c.id).where(queue.c.account.in_(_numbers(some)))
        if await snapshot_rows(store, chosen.limit(1)):
            return True
    return False


def stored_since(
    settings: Mapping[str, str], accounts: Sequence[UUID], since: float
) -> list[StoredDelivery]:
    """What the store has of the deliveries that were created after that instant."""
    lowest = lowest_at(datetime.fromtimestamp(since, UTC))

    async def found(store: AnyStore) -> list[StoredDelivery]:
        return [
            each for some in pieces(accounts) for each in await _of_accounts(store, some, lowest)
        ]

    return asyncio.run(asked(settings, found))


async def _of_accounts(
    store: AnyStore, accounts: Sequence[UUID], lowest: UUID
) -> list[StoredDelivery]:
    found = {tables.endpoints.name: await snapshot_rows(store, sa.select(tables.endpoints))}
    for table, key in (
        (attempts, attempts.c.delivery_id),
        (deliveries, deliveries.c.id),
        (queue, queue.c.id),
    ):
        chosen = sa.select(table).where(table.c.account.in_(_numbers(accounts)), key >= lowest)
        found[table.name] = await snapshot_rows(store, chosen)
    return stored_deliveries(found)


def _numbers(accounts: Sequence[UUID]) -> sa.Select[tuple[int]]:
    return sa.select(tables.accounts.c.number).where(tables.accounts.c.id.in_(accounts))


def require_kept(history: History) -> None:
    """Checks every guarantee, and since every receiver answers 200, that all was delivered."""
    broken = history.broken_promises()
    assert broken == [], broken[:5]
    assert history.acknowledged, "nothing was acknowledged, so nothing is proved"
    assert {each.status for each in history.deliveries} == {"delivered"}


def require_all_seen(sent: set[str], seen: Sequence[Seen], webhook_id: str, secret: str) -> None:
    """For senders without a history: all accepted events arrived, unaltered and signed."""
    delivered = [StoredDelivery(each, webhook_id, each, "delivered", None, ()) for each in sent]
    secrets = {webhook_id: [secret]}
    require_kept(History(set(sent), list(seen), delivered, secrets, keeps_attempts=False))


def require_no_stall(said: str) -> None:
    """`said` is the standard error of a service."""
    stalls = [line for line in said.splitlines() if "event=engine_" in line]
    assert not stalls, "\n".join(stalls)
