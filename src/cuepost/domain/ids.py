"""UUIDs of version 7: they sort by the millisecond in which they were made.

History is paged, partitioned and cut off by id alone: the time inside an id is meant.
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
    """A version 7 UUID of that millisecond; `random_bits` fills the 74 free bits."""
    return UUID(int=composed(millis, random_bits))


def composed(millis: int, random_bits: int) -> int:
    """The same as a number."""
    high, low = random_bits >> 62 & 0xFFF, random_bits & _LOW_62
    return millis << 80 | _VERSION_7 | high << 64 | _RFC_VARIANT | low


def lowest_at(instant: datetime) -> UUID:
    """The bound below every id made at that instant or later; no id is older than the epoch."""
    return UUID(int=max(to_millis(instant), 0) << 80)


def instant_of(identifier: UUID) -> datetime:
    """Total, because ids come from outside as well: what lies past the year 9999 is its end."""
    return from_millis(min(identifier.int >> 80, _LAST_OF_9999))
