"""Instants: aware UTC datetimes with millisecond precision, and their text form."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_EXACT_AS_FLOAT = 2**32 * 1000


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
