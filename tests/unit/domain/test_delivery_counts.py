"""Counts: what class an attempt is of, percentiles from bins, and sums."""

import pytest

from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import (
    LATENCY_BINS,
    AttemptClass,
    Counts,
    class_of,
    interval_of,
    latency_bin,
    percentile,
    total_of,
)


def bins(**counts: int) -> list[int]:
    return [counts.get(f"b{place}", 0) for place in range(LATENCY_BINS)]


@pytest.mark.parametrize(
    ("outcome", "status", "expected"),
    [
        (Outcome.DELIVERED, 204, AttemptClass.ACKNOWLEDGED),
        (Outcome.REDIRECT, 301, AttemptClass.REDIRECT),
        (Outcome.HTTP_ERROR, 404, AttemptClass.CLIENT_ERROR),
        (Outcome.HTTP_ERROR, 499, AttemptClass.CLIENT_ERROR),
        (Outcome.HTTP_ERROR, 500, AttemptClass.SERVER_ERROR),
        (Outcome.HTTP_ERROR, None, AttemptClass.CLIENT_ERROR),
        (Outcome.TIMEOUT, None, AttemptClass.TIMEOUT),
        (Outcome.INTERRUPTED, None, None),
        (Outcome.SUPERSEDED, 500, None),
    ],
)
def test_an_attempt_that_counts_has_a_class(
    outcome: Outcome, status: int | None, expected: AttemptClass | None
) -> None:
    assert class_of(outcome, status) is expected


def test_every_outcome_that_counts_has_a_class() -> None:
    assert {each for each in Outcome if class_of(each, 200)} == {
        each for each in Outcome if each.counts
    }


@pytest.mark.parametrize(
    ("duration", "expected"), [(0.0, 0), (10.0, 0), (10.1, 1), (9_999.0, 9), (60_000.0, 10)]
)
def test_a_bin_includes_its_upper_bound(duration: float, expected: int) -> None:
    assert latency_bin(duration) == expected


def test_without_attempts_there_is_no_percentile() -> None:
    assert percentile(bins(), 0.5) is None


def test_attempts_of_a_bin_are_spread_evenly_over_it() -> None:
    assert percentile(bins(b0=4), 0.5) == 5.0
    assert percentile(bins(b0=1, b2=1), 0.95) == pytest.approx(47.5)
    assert percentile(bins(b3=10), 0.5) == 75.0


def test_what_took_longest_counts_as_the_last_bound() -> None:
    assert percentile(bins(b10=3), 0.95) == 10_000


def test_counts_add_up() -> None:
    one = Counts(3, 1, 2, 1, {AttemptClass.TIMEOUT: 1}, bins(b1=4))
    other = Counts(1, 0, 0, 0, {AttemptClass.ACKNOWLEDGED: 1}, bins(b0=1, b1=1))
    both = total_of([one, other])
    assert both == Counts(
        4,
        1,
        2,
        1,
        {AttemptClass.ACKNOWLEDGED: 1, AttemptClass.TIMEOUT: 1},
        tuple(bins(b0=1, b1=5)),
    )
    assert both.by_status == {
        DeliveryStatus.DELIVERED: 4,
        DeliveryStatus.FAILED: 1,
        DeliveryStatus.CANCELLED: 2,
    }
    assert both.total == 7
    assert both.p50_ms == pytest.approx(16)
    assert both.p95_ms == pytest.approx(24.1)


def test_the_success_rate_leaves_out_what_was_never_attempted() -> None:
    assert Counts(cancelled=2).success_rate is None
    assert Counts(delivered=1, cancelled=2, abandoned=1).success_rate == 0.5
    assert Counts(delivered=1, failed=3).success_rate == 0.25
    assert Counts(delivered=1).by_status == {DeliveryStatus.DELIVERED: 1}


def test_an_interval_begins_at_a_multiple_of_its_length() -> None:
    assert interval_of(3_600_000 + 299_999, 5) == 3_600_000
    assert interval_of(3_600_000 + 300_000, 5) == 3_900_000
    assert interval_of(7_199_999, 60) == 3_600_000
