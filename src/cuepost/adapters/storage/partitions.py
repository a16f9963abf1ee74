"""One partition a day for the history tables, by the day that their version 7 ids carry."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from cuepost.adapters.storage.tables import PARTITIONED
from cuepost.domain.ids import lowest_at

__all__ = ["AHEAD", "EXISTING", "LOCK", "PARTITIONED", "missing"]

AHEAD = timedelta(days=14)
# Any constant will do, as long as every process takes the same one.
LOCK = 0x6375_6570
EXISTING = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE p.relname = ANY($1) AND p.relnamespace = current_schema()::regnamespace"
)
_DAY = timedelta(days=1)


def missing(existing: frozenset[str], now: datetime) -> Iterator[str]:
    """The statements that make yesterday's, today's and the coming days' partitions."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0) - _DAY
    while day <= now + AHEAD:
        for table in PARTITIONED:
            name = f"{table.name}_{day:%Y%m%d}"
            if name not in existing:
                yield from _new(name, table.name, day)
        day += _DAY


def _new(name: str, table: str, day: datetime) -> Iterator[str]:
    """Made apart and then attached: to create it in its place would lock the whole table."""
    yield f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)"
    yield (
        f"ALTER TABLE {table} ATTACH PARTITION {name} "
        f"FOR VALUES FROM ('{lowest_at(day)}') TO ('{lowest_at(day + _DAY)}')"
    )
