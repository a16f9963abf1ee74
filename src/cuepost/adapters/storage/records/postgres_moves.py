"""Accounts that move to or from another database, on PostgreSQL."""

from datetime import datetime

from cuepost.adapters.storage import partitions
from cuepost.adapters.storage.columns import PARTITION_KEYS
from cuepost.adapters.storage.records.moves import AccountMoveRecords
from cuepost.adapters.storage.session import Rows
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.instants import instant_of

_TAKE_TURN = Sql(postgresql="SELECT pg_advisory_xact_lock(:lock::bigint)")


class PostgresMoves(AccountMoveRecords):
    async def _prepare_days(self, table: str, rows: Rows) -> None:
        """Creates missing partitions, also for days long past."""
        if table not in PARTITION_KEYS:
            return
        days = {_day(instant_of(row[PARTITION_KEYS[table]])) for row in rows}
        if not await self._missing(table, days):
            return
        await self._session.fetch(_TAKE_TURN, lock=partitions.LOCK)
        for day in await self._missing(table, days):
            for statement in partitions.of_day(table, day):
                await self._session.fetch(Sql(postgresql=statement))

    async def _missing(self, table: str, days: set[str]) -> list[str]:
        existing = await self._session.fetch(partitions.EXISTING_NAMES, names=[table])
        there = {name for (name,) in existing}
        return sorted(day for day in days if f"{table}_{day}" not in there)


def _day(instant: datetime) -> str:
    return f"{instant:%Y%m%d}"
