"""The real clock, real ids and real chance."""

from datetime import UTC, timedelta

from hypothesis import given
from hypothesis import strategies as st

from cuepost.adapters.system_clock import SystemClock, SystemIds, system_entropy
from cuepost.domain.instants import EPOCH, at_millisecond, instant_of
from cuepost.testing import START


def test_now_is_in_utc_at_millisecond_precision_and_does_not_run_backwards() -> None:
    clock = SystemClock()
    moments = [clock.now() for _ in range(100)]
    assert moments == sorted(moments)
    assert all(each == at_millisecond(each) and each.tzinfo is UTC for each in moments)
    assert moments[0] > START - timedelta(days=365)


async def test_a_wait_of_nothing_ends_at_once() -> None:
    await SystemClock().wait(0)


@given(st.lists(st.integers(min_value=0, max_value=3), max_size=50))
def test_ids_made_as_time_goes_by_are_in_order_and_carry_their_instant(steps: list[int]) -> None:
    new_id, now = SystemIds(), EPOCH
    made = []
    for step in steps:
        now += timedelta(milliseconds=step)
        made.append(new_id(now))
        assert instant_of(made[-1]) == now
    assert made == sorted(set(made))


def test_many_ids_of_one_millisecond_are_in_order() -> None:
    new_id = SystemIds()
    made = [new_id(START) for _ in range(2_000)]
    assert made == sorted(set(made))
    assert {each.version for each in made} == {7}


def test_two_sources_do_not_collide() -> None:
    one, other = SystemIds(), SystemIds()
    made = [source(START) for _ in range(500) for source in (one, other)]
    assert len(set(made)) == 1_000


def test_entropy_is_as_long_as_asked_for_and_never_repeats() -> None:
    drawn = {system_entropy(32) for _ in range(100)}
    assert len(drawn) == 100
    assert {len(each) for each in drawn} == {32}
