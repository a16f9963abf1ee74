"""When the next attempt is due: never early, at most a tenth late, and not after the third."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuepost.domain.retry_schedule import LARGEST_JITTER, RetrySchedule
from cuepost.testing import START

SCHEDULE = RetrySchedule((timedelta(seconds=60), timedelta(seconds=300)))
jitters = st.floats(min_value=0, max_value=1, exclude_max=True)
pauses = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=30))


def test_there_are_three_attempts() -> None:
    assert SCHEDULE.attempts == 3


@pytest.mark.parametrize(
    ("attempts_made", "jitter", "pause"),
    [
        (1, 0.0, timedelta(seconds=60)),
        (1, 0.5, timedelta(seconds=63)),
        (2, 0.0, timedelta(seconds=300)),
        (2, 0.5, timedelta(seconds=315)),
    ],
)
def test_the_pause_grows_and_jitter_lengthens_it(
    attempts_made: int, jitter: float, pause: timedelta
) -> None:
    assert SCHEDULE.next_attempt_at(attempts_made, START, jitter) == START + pause


@pytest.mark.parametrize("attempts_made", [3, 4])
def test_after_the_third_attempt_there_is_none(attempts_made: int) -> None:
    assert SCHEDULE.next_attempt_at(attempts_made, START, 0.5) is None


def test_without_pauses_there_is_one_attempt() -> None:
    only_one = RetrySchedule(())
    assert only_one.attempts == 1
    assert only_one.next_attempt_at(1, START, 0.0) is None


@given(st.lists(pauses, min_size=1, max_size=5), jitters, st.data())
def test_an_attempt_is_never_early_and_at_most_a_tenth_late(
    chosen: list[timedelta], jitter: float, data: st.DataObject
) -> None:
    made = data.draw(st.integers(min_value=1, max_value=len(chosen)))
    pause = chosen[made - 1]
    due = RetrySchedule(tuple(chosen)).next_attempt_at(made, START, jitter)
    assert due is not None
    assert START + pause <= due <= START + pause * (1 + LARGEST_JITTER)
