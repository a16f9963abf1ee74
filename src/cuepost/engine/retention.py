"""What is kept for a time and then leaves by itself.

Delivery history is there for the whole window and leaves soon after it: within an hour on SQLite,
on PostgreSQL with its day, so within an hour of the first midnight (UTC) after it. Until then it
is shown and can be sent again; what is on its way stays until that has ended.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta

from cuepost.ports.retention import Expiring
from cuepost.ports.store import Store, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import EXPIRED_ROWS_AT_ONCE, PAGES_AT_ONCE

Look = Callable[[Transaction], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class Expiry:
    """Looks before it asks for a writing transaction: most of the time nothing is old enough."""

    store: Store
    clock: Clock

    async def step(self, what: Expiring, life: timedelta) -> bool:
        """Forget some of what has lived for so long; True when there may be more."""
        before = self.clock.now() - life
        if not await self._sees(lambda look: look.retention.any_before(what, before)):
            return False
        async with self.store.transaction() as transaction:
            return await transaction.retention.delete_before(what, before, EXPIRED_ROWS_AT_ONCE)

    async def give_room_back(self) -> bool:
        if not await self._sees(lambda look: look.retention.has_spare_room()):
            return False
        async with self.store.transaction() as transaction:
            return await transaction.retention.give_room_back(PAGES_AT_ONCE)

    async def _sees(self, look: Look) -> bool:
        async with self.store.snapshot() as transaction:
            return await look(transaction)
