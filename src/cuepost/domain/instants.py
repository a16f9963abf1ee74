"""Instants, and the ids that begin with one.

Instants are aware UTC datetimes with millisecond precision. Ids are version 7 UUIDs, which sort by
the millisecond in which they were made: history is paged, partitioned and expired by it.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EXACT_AS_FLOAT = 2**32 * 1000
RANDOM_BITS = 74
# Of the 128 bits of an id, those below the time.
MILLIS_SHIFT = 80
_VERSION_7 = 0x7 << 76
_RFC_VARIANT = 0b10 << 62
_LOW_62 = (1 << 62) - 1
_LAST_OF_9999 = 253_402_300_799_999


def to_millis(instant: datetime) -> int:
    return (instant - EPOCH) // _MILLISECOND


def from_millis(millis: int) -> datetime:
    # The faster way is exact while a float can represent microseconds, until the year 2106.
    if 0 <= millis < _EXACT_AS_FLOAT:
        return datetime.fromtimestamp(millis / 1000, UTC)
    return EPOCH + timedelta(0, 0, 0, millis)


def to_text(instant: datetime) -> str:
    """`2026-01-02T03:04:05.678Z`"""
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def at_millisecond(instant: datetime) -> datetime:
    """The same instant in UTC, truncated to the precision that is stored and shown."""
    in_utc = instant.astimezone(UTC)
    return in_utc.replace(microsecond=in_utc.microsecond // 1000 * 1000)


def compose(millis: int, random_bits: int) -> UUID:
    """A version 7 UUID with that time; `random_bits` fills the 74 free bits."""
    high, low = random_bits >> 62 & 0xFFF, random_bits & _LOW_62
    return UUID(int=millis << MILLIS_SHIFT | _VERSION_7 | high << 64 | _RFC_VARIANT | low)


def lowest_at(instant: datetime) -> UUID:
    """The lower bound of all ids made at that instant or later; no id is older than the epoch."""
    return UUID(int=max(to_millis(instant), 0) << MILLIS_SHIFT)


def millis_of(identifier: UUID) -> int:
    """The time in an id, in milliseconds since the epoch."""
    return identifier.int >> MILLIS_SHIFT


def instant_of(identifier: UUID) -> datetime:
    """The time in an id; limited to the year 9999, because clients can send any id."""
    return from_millis(min(millis_of(identifier), _LAST_OF_9999))
