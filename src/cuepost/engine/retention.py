"""Deletes what has been kept for its retention time.

Delivery history is kept for the whole retention time and deleted soon after: within an hour on
SQLite; on PostgreSQL with its day, so within an hour of the next midnight (UTC). Until then it is
shown and can be sent again. A live delivery is kept until it has ended.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from cuepost.ports.retention import Expiring
from cuepost.ports.store import Store, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import EXPIRED_ROWS_AT_ONCE, PAGES_AT_ONCE

Check = Callable[[Transaction], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Expiry:
    """Checks before it opens a write transaction, because usually nothing is old enough."""

    store: Store
    clock: Clock

    async def step(self, what: Expiring, life: timedelta) -> bool:
        """Delete some rows that are older than `life`; return True if there may be more."""
        before = self.clock.now() - life
        if not await self._check(lambda snapshot: snapshot.retention.any_before(what, before)):
            return False
        async with self.store.transaction() as transaction:
            return await transaction.retention.delete_before(what, before, EXPIRED_ROWS_AT_ONCE)

    async def return_free_pages(self) -> bool:
        if not await self._check(lambda snapshot: snapshot.retention.has_free_pages()):
            return False
        async with self.store.transaction() as transaction:
            return await transaction.retention.return_free_pages(PAGES_AT_ONCE)

    async def _check(self, check: Check) -> bool:
        async with self.store.snapshot() as transaction:
            return await check(transaction)
