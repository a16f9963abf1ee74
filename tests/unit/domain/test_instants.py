"""Instants: milliseconds since the epoch, and one way to write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.instants import EPOCH, at_millisecond, from_millis, to_millis, to_text
from cuepost.testing import START

instants = st.datetimes(timezones=st.just(UTC)).map(at_millisecond)


@pytest.mark.parametrize(
    ("instant", "text"),
    [
        (START, "2026-01-02T03:04:05.678Z"),
        (EPOCH, "1970-01-01T00:00:00.000Z"),
        (datetime(2026, 12, 31, 23, 59, 59, 999_999, UTC), "2026-12-31T23:59:59.999Z"),
        (datetime(987, 6, 5, 4, 3, 2, 1_000, UTC), "0987-06-05T04:03:02.001Z"),
    ],
)
def test_an_instant_is_written_in_utc_with_three_decimals(instant: datetime, text: str) -> None:
    assert to_text(instant) == text


@given(instants)
def test_every_instant_survives_its_text_and_its_milliseconds(instant: datetime) -> None:
    assert datetime.fromisoformat(to_text(instant)) == instant
    assert from_millis(to_millis(instant)) == instant


def test_milliseconds_count_from_the_epoch() -> None:
    assert to_millis(EPOCH + timedelta(seconds=1, microseconds=2_999)) == 1_002
    assert from_millis(1_002) == EPOCH + timedelta(seconds=1, milliseconds=2)


@pytest.mark.parametrize(
    "millis", [-1, 0, 2**32 * 1000 - 1, 2**32 * 1000 + 1, 253_402_300_799_999, -62_135_596_800_000]
)
def test_milliseconds_are_exact_in_every_year(millis: int) -> None:
    instant = from_millis(millis)
    assert instant == EPOCH + timedelta(milliseconds=millis)
    assert instant.tzinfo is UTC


def test_an_instant_of_another_zone_becomes_utc_and_is_cut_not_rounded() -> None:
    tokyo = datetime(2026, 1, 2, 12, 4, 5, 678_999, timezone(timedelta(hours=9)))
    assert at_millisecond(tokyo) == START
    assert at_millisecond(tokyo).tzinfo is UTC
