"""Parked deliveries of an account that moves: they stay in the queue, due in a thousand years.

So claims skip them without a condition. They are parked and unparked by the same number of hours,
so that each gets its original due time back.
"""

from datetime import UTC, datetime, timedelta

from cuepost.adapters.storage.columns import WAITING
from cuepost.adapters.storage.sql import Sql

_HOURS = 8_766_000
_MILLIS = _HOURS * 3_600_000
SHIFT = timedelta(hours=_HOURS)
# No delivery that is not parked is due that late.
PARKED_FROM = datetime(2900, 1, 1, tzinfo=UTC)


def _shift(sign: str, which: str) -> Sql:
    chosen = f"WHERE {WAITING} AND account = :account AND due_at {which} :parked_from"
    return Sql(
        sqlite=f"UPDATE queue SET due_at = due_at {sign} {_MILLIS} {chosen}",
        postgresql=f"UPDATE queue SET due_at = due_at {sign} interval '{_HOURS} hours' {chosen}",
    )


PARK = _shift("+", "<")
UNPARK = _shift("-", ">=")


def unparked(due_at: datetime) -> datetime:
    return due_at - SHIFT if due_at >= PARKED_FROM else due_at
