"""What is counted of the deliveries to an endpoint, and how percentiles follow from the counts.

A delivery and its attempts are counted in the interval in which the delivery began, as its id
says: so a count is a count of the history, whatever becomes of a delivery later.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from functools import partial

from cuepost.domain.attempt import Outcome
from cuepost.domain.delivery import DeliveryStatus

FINE_MINUTES = 5
HOUR_MINUTES = 60
"""The two lengths of intervals; both have the same counts."""


class AttemptClass(StrEnum):
    """How an attempt ended, as charts tell it apart."""

    ACKNOWLEDGED = "http_2xx"
    REDIRECT = "http_3xx"
    CLIENT_ERROR = "http_4xx"
    SERVER_ERROR = "http_5xx"
    TIMEOUT = "timeout"
    CONNECT_ERROR = "connect_error"
    TLS_ERROR = "tls_error"
    BLOCKED_DESTINATION = "blocked_destination"
    PROTOCOL_ERROR = "protocol_error"


_CLASSES: Mapping[Outcome, AttemptClass] = {
    Outcome.DELIVERED: AttemptClass.ACKNOWLEDGED,
    Outcome.REDIRECT: AttemptClass.REDIRECT,
    Outcome.HTTP_ERROR: AttemptClass.CLIENT_ERROR,
    Outcome.TIMEOUT: AttemptClass.TIMEOUT,
    Outcome.CONNECT_ERROR: AttemptClass.CONNECT_ERROR,
    Outcome.TLS_ERROR: AttemptClass.TLS_ERROR,
    Outcome.BLOCKED_DESTINATION: AttemptClass.BLOCKED_DESTINATION,
    Outcome.PROTOCOL_ERROR: AttemptClass.PROTOCOL_ERROR,
}
_FIRST_SERVER_ERROR = 500

LATENCY_BOUNDS_MS = (10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000)
"""Upper bounds of the bins; one more bin has what took longer."""
LATENCY_BINS = len(LATENCY_BOUNDS_MS) + 1
NO_LATENCY = (0,) * LATENCY_BINS


def class_of(outcome: Outcome, response_status: int | None) -> AttemptClass | None:
    """None for attempts that do not count."""
    found = _CLASSES.get(outcome)
    if found is AttemptClass.CLIENT_ERROR and (response_status or 0) >= _FIRST_SERVER_ERROR:
        return AttemptClass.SERVER_ERROR
    return found


latency_bin = partial(bisect_left, LATENCY_BOUNDS_MS)
"""The bin of a duration in milliseconds."""


def percentile(bins: Sequence[int], share: float) -> float | None:
    """In milliseconds, as if the attempts of a bin were spread evenly over it.

    The last bin has no upper bound, so what is in it counts as its lower bound.
    """
    wanted = sum(bins) * share
    if not wanted:
        return None
    place = next(place for place, count in enumerate(_running(bins)) if count >= wanted)
    lower = float(LATENCY_BOUNDS_MS[place - 1]) if place else 0.0
    if place == len(LATENCY_BOUNDS_MS):
        return lower
    passed = sum(bins[:place])
    return lower + (LATENCY_BOUNDS_MS[place] - lower) * (wanted - passed) / bins[place]


def _running(bins: Sequence[int]) -> list[int]:
    total, sums = 0, list[int]()
    for count in bins:
        total += count
        sums.append(total)
    return sums


@dataclass(frozen=True, slots=True)
class Counts:
    """Of the deliveries that began within an interval or several.

    `abandoned` are those of the cancelled ones that had been attempted in vain.
    """

    delivered: int = 0
    failed: int = 0
    cancelled: int = 0
    abandoned: int = 0
    attempts: Mapping[AttemptClass, int] = field(default_factory=dict)
    latency: Sequence[int] = NO_LATENCY

    @property
    def by_status(self) -> Mapping[DeliveryStatus, int]:
        """Of those that occur."""
        counts = {
            DeliveryStatus.DELIVERED: self.delivered,
            DeliveryStatus.FAILED: self.failed,
            DeliveryStatus.CANCELLED: self.cancelled,
        }
        return {status: count for status, count in counts.items() if count}

    @property
    def total(self) -> int:
        return self.delivered + self.failed + self.cancelled

    @property
    def success_rate(self) -> float | None:
        """Of those that were attempted; cancelled before that, a delivery says nothing."""
        attempted = self.delivered + self.failed + self.abandoned
        return self.delivered / attempted if attempted else None

    @property
    def p50_ms(self) -> float | None:
        return percentile(self.latency, 0.50)

    @property
    def p95_ms(self) -> float | None:
        return percentile(self.latency, 0.95)


def total_of(counts: Iterable[Counts]) -> Counts:
    found = list(counts)
    attempts: Counter[AttemptClass] = Counter()
    for each in found:
        attempts.update(each.attempts)
    return Counts(
        sum(each.delivered for each in found),
        sum(each.failed for each in found),
        sum(each.cancelled for each in found),
        sum(each.abandoned for each in found),
        dict(attempts),
        tuple(map(sum, zip(*(each.latency for each in found), strict=True))) or NO_LATENCY,
    )


def interval_of(millis: int, minutes: int) -> int:
    """The beginning of the interval that an instant is in; both in milliseconds."""
    return millis - millis % (minutes * 60_000)


@dataclass(frozen=True, slots=True)
class Interval:
    """Counts of one endpoint."""

    since: datetime
    counts: Counts
