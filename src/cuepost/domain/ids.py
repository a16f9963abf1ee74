"""Version 7 UUIDs, which sort by the millisecond in which they were made.

History is paged, partitioned and expired by the time inside its ids.
"""

from datetime import datetime
from uuid import UUID

from cuepost.domain.instants import from_millis, to_millis

RANDOM_BITS = 74
_VERSION_7 = 0x7 << 76
_RFC_VARIANT = 0b10 << 62
_LOW_62 = (1 << 62) - 1
_LAST_OF_9999 = 253_402_300_799_999


def compose(millis: int, random_bits: int) -> UUID:
    """A version 7 UUID with that time; `random_bits` fills the 74 free bits."""
    return UUID(int=composed(millis, random_bits))


def composed(millis: int, random_bits: int) -> int:
    """As `compose`, but returns the number."""
    high, low = random_bits >> 62 & 0xFFF, random_bits & _LOW_62
    return millis << 80 | _VERSION_7 | high << 64 | _RFC_VARIANT | low


def lowest_at(instant: datetime) -> UUID:
    """The lower bound of all ids made at that instant or later; no id is older than the epoch."""
    return UUID(int=max(to_millis(instant), 0) << 80)


def millis_of(identifier: UUID) -> int:
    """The time in an id, in milliseconds since the epoch."""
    return identifier.int >> 80


def instant_of(identifier: UUID) -> datetime:
    """The time in an id; limited to the year 9999, because clients can send any id."""
    return from_millis(min(millis_of(identifier), _LAST_OF_9999))
