"""The stream of a listener: what was found keeps its number, and nothing is passed over."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuepost.domain.errors import PositionUnknown
from cuepost.domain.instants import compose, lowest_at, to_millis
from cuepost.domain.listener import CLOCK_TOLERANCE, Listener, Mark, TransactionNumbers

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(minutes=10)
FOUND = compose(to_millis(NOW), 1)


def registered() -> Listener:
    return Listener.registered(
        UUID(int=1),
        UUID(int=2),
        "laptop",
        ("project.completed",),
        now=NOW,
        numbers=TransactionNumbers(10, 8),
    )


def test_it_begins_a_little_before_its_registration() -> None:
    begin = NOW - CLOCK_TOLERANCE
    listener = registered()
    assert (listener.settled, listener.mark) == (lowest_at(begin), Mark(begin, 10))
    assert (listener.acknowledged, listener.last_position) == (0, 0)


def test_an_acknowledgement_never_goes_back() -> None:
    listener = replace(registered(), last_position=5).acknowledging(4)
    assert listener.acknowledging(2).acknowledged == 4


def test_what_was_never_handed_out_cannot_be_acknowledged() -> None:
    with pytest.raises(PositionUnknown, match="is 0"):
        registered().acknowledging(1)


def test_while_an_earlier_transaction_is_open_nothing_is_settled() -> None:
    before = registered()
    after = before.having_found([FOUND], is_all=True, now=LATER, numbers=TransactionNumbers(12, 10))
    assert after == replace(before, last_position=1)


def test_once_it_is_over_everything_before_the_mark_is_settled() -> None:
    after = registered().having_found(
        [], is_all=True, now=LATER, numbers=TransactionNumbers(12, 11)
    )
    # The mark lay before the registration: what is settled does not go back behind that.
    assert (after.settled, after.mark) == (registered().settled, Mark(LATER, 12))
    again = after.having_found([], is_all=True, now=LATER, numbers=TransactionNumbers(14, 13))
    assert again.settled == lowest_at(LATER - CLOCK_TOLERANCE)


def test_when_more_is_to_be_found_only_what_was_found_is_settled() -> None:
    listener = replace(registered(), mark=Mark(LATER, 10))
    after = listener.having_found(
        [FOUND], is_all=False, now=LATER, numbers=TransactionNumbers(12, 11)
    )
    assert (after.settled, after.last_position) == (FOUND, 1)


def test_a_server_that_counts_from_the_start_gets_a_new_mark() -> None:
    after = registered().having_found([], is_all=True, now=LATER, numbers=TransactionNumbers(3, 2))
    assert (after.settled, after.mark) == (registered().settled, Mark(LATER, 3))
