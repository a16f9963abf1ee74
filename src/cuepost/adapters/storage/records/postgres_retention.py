"""Old history on PostgreSQL: partitions of whole days are dropped.

A delivery that is being sent again keeps its partition until it ends.
"""

from datetime import datetime

from cuepost.adapters.storage import partitions
from cuepost.adapters.storage.records.retention import RetentionRecords
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.instants import lowest_at

# One index step for each account, however long the queue is.
_ACCOUNT_WITH_LIVE = Sql(
    """
    SELECT id FROM accounts WHERE EXISTS (
        SELECT 1 FROM queue
        WHERE queue.account = accounts.number AND queue.id >= :lowest AND queue.id < :following
    )
    LIMIT 1
    """
)
_TAKE_TURN = Sql(postgresql="SELECT pg_try_advisory_xact_lock(:lock::bigint)")


class PostgresRetention(RetentionRecords):
    async def _any_history(self, instant: datetime) -> bool:
        return await self._day_to_drop(instant) is not None

    async def _delete_history(self, instant: datetime, rows: int) -> bool:
        [(is_mine,)] = await self._session.fetch(_TAKE_TURN, lock=partitions.LOCK)
        if not is_mine:
            return False
        # `fetch`, because `execute` would parse a number of rows, which these do not return.
        for statement in partitions.locking():
            await self._session.fetch(Sql(postgresql=statement))
        # Read under the lock: from here on no delivery of that day can be sent again.
        day = await self._day_to_drop(instant)
        if day is not None:
            await self._session.fetch(Sql(postgresql=partitions.dropping(day)))
        return day is not None

    async def lacks_days(self, now: datetime) -> bool:
        return any(partitions.missing(frozenset(await self._partitions()), now))

    async def _day_to_drop(self, instant: datetime) -> datetime | None:
        for day in partitions.ended_before(await self._partitions(), instant):
            bounds = {"lowest": lowest_at(day), "following": lowest_at(day + partitions.DAY)}
            if not await self._session.fetch(_ACCOUNT_WITH_LIVE, **bounds):
                return day
        return None

    async def _partitions(self) -> list[str]:
        found = await self._session.fetch(partitions.EXISTING_NAMES, names=partitions.PARTITIONED)
        return [name for (name,) in found]
