"""By how much figures differ from those of the period before."""

import pytest

from cuepost.domain.comparison import Comparison, compared
from cuepost.domain.delivery_counts import NO_LATENCY, Counts

FAST = (10, *NO_LATENCY[1:])
"""All attempts in the first bin, up to 10 ms."""
SLOW = (0, 0, 10, *NO_LATENCY[3:])
"""All attempts between 25 and 50 ms."""


def test_without_counts_before_there_is_no_comparison() -> None:
    assert compared(Counts(delivered=3), Counts(), 1.0) is None


def test_each_figure_is_compared() -> None:
    counts = Counts(delivered=90, failed=30, cancelled=4, abandoned=0, latency=SLOW)
    before = Counts(delivered=60, failed=20, cancelled=8, abandoned=0, latency=FAST)
    assert compared(counts, before, 1.0) == Comparison(
        success_rate=0.0,
        delivered=0.5,
        failed=0.5,
        cancelled=-0.5,
        p50_ms=37.5 / 5 - 1,
        p95_ms=48.75 / 9.5 - 1,
    )


def test_rates_are_compared_by_their_difference() -> None:
    found = compared(Counts(delivered=9, failed=1), Counts(delivered=7, failed=3), 1.0)
    assert found is not None
    assert found.success_rate == pytest.approx(0.2)


@pytest.mark.parametrize("elapsed", [11 / 12, 23.1 / 24, 1.0])
def test_steady_traffic_has_not_changed_while_the_newest_interval_fills(elapsed: float) -> None:
    before = Counts(delivered=24_000, failed=2_400, cancelled=240)
    counts = Counts(round(24_000 * elapsed), round(2_400 * elapsed), round(240 * elapsed))
    found = compared(counts, before, elapsed)
    assert found is not None
    assert (found.delivered, found.failed, found.cancelled, found.success_rate) == pytest.approx(
        (0, 0, 0, 0), abs=0.01
    )


def test_what_was_0_before_has_no_share() -> None:
    found = compared(Counts(delivered=1, failed=2), Counts(delivered=1), 1.0)
    assert found is not None
    assert (found.failed, found.cancelled) == (float("inf"), 0.0)


def test_figures_without_a_value_are_not_compared() -> None:
    """Nothing was attempted in one of the periods."""
    for counts, before in (
        (Counts(cancelled=1), Counts(delivered=1, latency=FAST)),
        (Counts(delivered=1, latency=FAST), Counts(cancelled=1)),
    ):
        found = compared(counts, before, 1.0)
        assert found is not None
        assert (found.success_rate, found.p50_ms, found.p95_ms) == (None, None, None)
