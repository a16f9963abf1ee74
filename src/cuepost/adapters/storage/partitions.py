"""Daily partitions of the history tables, by the day in their version 7 ids."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta

from cuepost.adapters.storage.columns import PARTITION_KEYS
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.instants import lowest_at

PARTITIONED = tuple(PARTITION_KEYS)
AHEAD = timedelta(days=14)
DAY = timedelta(days=1)
# An arbitrary constant that is the same in every process.
LOCK = 0x6375_6570
EXISTING = (
    "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid "
    "JOIN pg_class p ON p.oid = i.inhparent "
    "WHERE p.relname = ANY($1) AND p.relnamespace = current_schema()::regnamespace"
)
EXISTING_NAMES = Sql(postgresql=EXISTING.replace("$1", ":names"))
# Short, because every writer of history queues behind a drop that waits; it is tried again later.
TIMEOUT = "200ms"
_NAMED_BY_DAY = "%Y%m%d"


def missing(existing: frozenset[str], now: datetime) -> Iterator[str]:
    """The statements that create the missing partitions from yesterday to `AHEAD` days ahead."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0) - DAY
    while day <= now + AHEAD:
        for table in PARTITIONED:
            name = f"{table}_{day:{_NAMED_BY_DAY}}"
            if name not in existing:
                yield from _new(name, table, day)
        day += DAY


def of_day(table: str, day: str) -> Iterator[str]:
    """The statements that create one partition, by the day in its name."""
    return _new(f"{table}_{day}", table, _parsed(day))


def ended_before(existing: Iterable[str], instant: datetime) -> list[datetime]:
    """The days with partitions that ended before that instant, oldest first."""
    days = {_parsed(name.rpartition("_")[2]) for name in existing}
    return sorted(day for day in days if day + DAY <= instant)


def locking() -> Iterator[str]:
    """Locks tables before their partitions, as every other statement does, to avoid deadlocks."""
    yield f"SET LOCAL lock_timeout = '{TIMEOUT}'"
    names = ", ".join(f"ONLY {table}" for table in PARTITIONED)
    yield f"LOCK TABLE {names} IN ACCESS EXCLUSIVE MODE"


def dropping(day: datetime) -> str:
    names = ", ".join(f"{table}_{day:{_NAMED_BY_DAY}}" for table in PARTITIONED)
    return f"DROP TABLE IF EXISTS {names}"


def _parsed(day: str) -> datetime:
    return datetime.strptime(day, _NAMED_BY_DAY).replace(tzinfo=UTC)


def _new(name: str, table: str, day: datetime) -> Iterator[str]:
    """Created separately and then attached: `PARTITION OF` would lock the whole table."""
    yield f"CREATE TABLE {name} (LIKE {table} INCLUDING ALL)"
    yield (
        f"ALTER TABLE {table} ATTACH PARTITION {name} "
        f"FOR VALUES FROM ('{lowest_at(day)}') TO ('{lowest_at(day + DAY)}')"
    )
