"""Version 7 ids: they carry their millisecond, and sort by it."""

from datetime import UTC, datetime, timedelta
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.instants import (
    EPOCH,
    RANDOM_BITS,
    compose,
    from_millis,
    instant_of,
    lowest_at,
    to_millis,
)
from cuepost.testing import START

LAST = to_millis(datetime(9999, 12, 31, 23, 59, 59, 999_000, UTC))
millis = st.integers(min_value=0, max_value=LAST)
chance = st.integers(min_value=0, max_value=(1 << RANDOM_BITS) - 1)


def test_an_id_has_the_layout_of_the_rfc() -> None:
    made = compose(0x0198C0DE5A3B, 0xD21 << 62 | 0x1C4E3F6A5B7C8D90)
    assert str(made) == "0198c0de-5a3b-7d21-9c4e-3f6a5b7c8d90"


@given(millis, chance)
def test_every_id_is_a_version_7_uuid_of_its_millisecond(at: int, bits: int) -> None:
    made = compose(at, bits)
    assert (made.version, made.variant) == (7, RFC_4122)
    assert instant_of(made) == from_millis(at)


@given(millis, chance, chance)
def test_all_random_bits_count(at: int, one: int, other: int) -> None:
    assert (compose(at, one) == compose(at, other)) is (one == other)
    assert (compose(at, one) < compose(at, other)) is (one < other)


@given(millis, chance, millis, chance)
def test_ids_sort_by_time_as_numbers_bytes_and_text(
    first: int, first_bits: int, second: int, second_bits: int
) -> None:
    a, b = compose(first, first_bits), compose(second, second_bits)
    if first != second:
        assert (a < b) is (a.bytes < b.bytes) is (str(a) < str(b)) is (first < second)


@given(millis, chance)
def test_the_bound_of_an_instant_lies_between_before_and_from_then_on(at: int, bits: int) -> None:
    made = compose(at, bits)
    assert lowest_at(from_millis(at)) < made
    if at < LAST:
        assert made < lowest_at(from_millis(at + 1))


def test_the_bound_of_an_instant_before_the_epoch_is_below_every_id() -> None:
    assert lowest_at(EPOCH - timedelta(days=1)) == lowest_at(EPOCH) == UUID(int=0)
    assert lowest_at(datetime.min.replace(tzinfo=UTC)) < compose(0, 0) < lowest_at(START)
