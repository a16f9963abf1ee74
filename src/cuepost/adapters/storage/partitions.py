"""One partition a day for the history tables, by the day that their version 7 ids carry."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from cuepost.adapters.storage.tables import PARTITIONED
from cuepost.domain.ids import lowest_at

__all__ = ["LOCK", "PARTITIONED", "missing"]

# Any constant will do, as long as every process takes the same one.
LOCK = 0x6375_6570
_DAY = timedelta(days=1)


def missing(existing: frozenset[str], now: datetime, ahead: timedelta) -> Iterator[str]:
    """The statements that make yesterday's, today's and the coming days' partitions."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0) - _DAY
    while day <= now + ahead:
        for table in PARTITIONED:
            name = f"{table.name}_{day:%Y%m%d}"
            if name not in existing:
                yield (
                    f"CREATE TABLE {name} PARTITION OF {table.name} "
                    f"FOR VALUES FROM ('{lowest_at(day)}') TO ('{lowest_at(day + _DAY)}')"
                )
        day += _DAY
