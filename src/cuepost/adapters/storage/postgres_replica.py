"""A hot standby of the PostgreSQL store, for reads that may be a little old."""

import asyncio
import logging
from datetime import timedelta

from cuepost.adapters.storage.pooler import Pooler
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_session import translated
from cuepost.ports.store import StoreError, StoreUnavailable

log = logging.getLogger("cuepost.store")

# The shortest time between two measurements of the lag, and before a failed replica is retried.
LOOK_SECONDS = 1.0
AGAIN_SECONDS = 5.0
# Shorter than for the primary, because the primary can answer instead of a replica.
MEASURING_SECONDS = 1.0
TIMEOUT_SECONDS = 5.0
# A connected standby that has replayed all it received is not behind, however old the last change
# is.
_LAG = """
SELECT pg_is_in_recovery(), CASE
    WHEN pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
        AND EXISTS (SELECT FROM pg_stat_wal_receiver) THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp())::float8
END
"""


class PostgresReplica(PostgresStore):
    def __init__(
        self,
        url: str,
        *,
        max_lag: timedelta,
        pooler: Pooler,
        connections: int,
        idle_seconds: float,
    ) -> None:
        super().__init__(
            url,
            pooler=pooler,
            connections=connections,
            idle_seconds=idle_seconds,
            wanted_server="standby",
            timeout_seconds=TIMEOUT_SECONDS,
            command_seconds=TIMEOUT_SECONDS,
        )
        self._max_lag = max_lag
        self._lag: timedelta | None = None
        self._next_look = 0.0
        self._is_used = True

    async def lag(self) -> timedelta | None:
        """During a measurement, other callers get the previous value."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_look:
            self._next_look = now + LOOK_SECONDS
            try:
                async with asyncio.timeout(MEASURING_SECONDS):
                    self._lag = await self._measured()
            except (StoreError, TimeoutError) as error:
                self._give_up(str(error) or f"no answer within {MEASURING_SECONDS:g} s")
            else:
                self._set_used(is_used=True, why="")
        return self._lag

    def failed(self, error: StoreError) -> None:
        """A read that was refused, for example by a conflict with the replay, does not count: the
        next one may succeed."""
        if isinstance(error, StoreUnavailable):
            self._give_up(str(error))

    async def _measured(self) -> timedelta:
        async with self.snapshot() as transaction:
            with translated():
                [(is_standby, seconds)] = await transaction.session.driver.fetch(_LAG)
        if not is_standby:
            # It may be the new primary, or have diverged from the old one.
            raise StoreUnavailable("it is not a standby")
        if seconds is None or seconds > self._max_lag.total_seconds():
            behind = "by an unknown time" if seconds is None else f"by {seconds:.0f} s"
            raise StoreUnavailable(f"it is behind {behind}")
        return timedelta(seconds=max(seconds, 0))

    def _give_up(self, why: str) -> None:
        self._lag = None
        self._next_look = asyncio.get_running_loop().time() + AGAIN_SECONDS
        self._set_used(is_used=False, why=why)

    def _set_used(self, *, is_used: bool, why: str) -> None:
        if is_used is self._is_used:
            return
        self._is_used = is_used
        if is_used:
            log.info("event=replica_used")
        else:
            log.warning('event=replica_unused error="%s"', why)
