"""How the counts of a range compare with those of the period of the same length before it."""

from dataclasses import dataclass

from cuepost.domain.delivery_counts import Counts


@dataclass(frozen=True, slots=True)
class Comparison:
    """By how much each figure has changed: 0.12 is 12 % more.

    The success rate is the difference of both rates instead. A figure is infinite if it was 0
    before, and None where one of both periods has no value.
    """

    success_rate: float | None
    delivered: float | None
    failed: float | None
    cancelled: float | None
    p50_ms: float | None
    p95_ms: float | None


def compared(counts: Counts, before: Counts, elapsed: float) -> Comparison | None:
    """None if nothing was counted before.

    `elapsed` is the part of the range that is over. Numbers of deliveries are compared as rates,
    so that steady traffic has not changed while the newest interval fills.
    """
    if not before.total:
        return None
    return Comparison(
        success_rate=_difference(counts.success_rate, before.success_rate),
        delivered=_change(counts.delivered, before.delivered * elapsed),
        failed=_change(counts.failed, before.failed * elapsed),
        cancelled=_change(counts.cancelled, before.cancelled * elapsed),
        p50_ms=_change(counts.p50_ms, before.p50_ms),
        p95_ms=_change(counts.p95_ms, before.p95_ms),
    )


def _difference(value: float | None, before: float | None) -> float | None:
    return None if value is None or before is None else value - before


def _change(value: float | None, before: float | None) -> float | None:
    if value is None or before is None:
        return None
    if not before:
        return float("inf") if value else 0.0
    return value / before - 1
