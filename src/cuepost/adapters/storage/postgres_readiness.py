"""Checks whether PostgreSQL accepts writes: by reading often, and by writing now and then."""

import asyncio
from collections.abc import Awaitable, Callable

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.partitions import PARTITIONED
from cuepost.adapters.storage.postgres_connecting import Driver
from cuepost.adapters.storage.postgres_session import translated
from cuepost.ports.store import Contention, StoreUnavailable

PROOF_SECONDS = 0.5
# Shorter than the server's deadlock_timeout, so that in a deadlock with a migration this check
# gives up, and never the migration.
LOCK_TIMEOUT = "750ms"
# History tables first, in the order in which their partitions are dropped.
_WRITTEN = (*PARTITIONED, "queue", "lanes", "workers", "projects", "reports", "endpoints")
_IS_READ_ONLY = "SELECT current_setting('transaction_read_only')::boolean OR pg_is_in_recovery()"
_LOCKS = (
    f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'; LOCK TABLE "
    + ", ".join(f"ONLY {table}" for table in _WRITTEN)
    + " IN ROW EXCLUSIVE MODE"
)
# This writes to the WAL, so the commit waits for the disk and the synchronous standbys.
_CHANGE = "SELECT pg_logical_emit_message(true, 'cuepost', '')"

Ask = Callable[[Callable[[Driver], Awaitable[None]]], Awaitable[None]]


class Readiness:
    def __init__(self, in_transaction: Ask) -> None:
        self._in_transaction = in_transaction
        self._next_proof = 0.0
        self._proof: asyncio.Future[None] | None = None

    async def check(self) -> None:
        """May be called at any rate: concurrent calls share one write."""
        if self._proof is None:
            now = asyncio.get_running_loop().time()
            if now < self._next_proof:
                await self._in_transaction(_require_usable)
                return
            self._next_proof = now + PROOF_SECONDS
            proof = asyncio.ensure_future(self._prove())  # noqa: TID251  # it ends with its command
            proof.add_done_callback(self._ended)
            self._proof = proof
        await asyncio.shield(self._proof)

    async def _prove(self) -> None:
        try:
            await self._in_transaction(_change)
        except Contention as error:
            raise StoreUnavailable(f"a table is locked: {error}", error.sqlstate) from error

    def _ended(self, proof: asyncio.Future[None]) -> None:
        self._proof = None
        if proof.cancelled() or proof.exception() is not None:
            self._next_proof = 0.0


async def _change(driver: Driver) -> None:
    await _require_usable(driver)
    with translated():
        await driver.execute(_LOCKS)
        await driver.execute(_CHANGE)


async def _require_usable(driver: Driver) -> None:
    with translated():
        found = await schema.found_on_postgres(driver)
        is_read_only = await driver.fetchval(_IS_READ_ONLY)
    try:
        found.require_usable()
    except schema.WrongSchema as error:
        raise StoreUnavailable(str(error)) from error
    if is_read_only:
        raise StoreUnavailable("the database is read-only")
