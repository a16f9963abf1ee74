"""When a claim has to scan all endpoints, and not only those that the worker was woken for.

A claim with a full scan takes about 1.5 times as long, so endpoints with a wake-up are served
without one. But not all work has a wake-up: retries come due, workers die, a wake-up may be lost.
"""

from datetime import datetime
from math import inf

from cuepost.ports.dispatch import BEGINNING, ScanProgress
from cuepost.ports.system import Clock
from cuepost.tuning import LONGEST_WITHOUT_SCAN_SECONDS


class FullScan:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.scan_after = BEGINNING
        self._next_due: datetime | None = None
        self._skipped_since: float | None = None

    @property
    def is_halfway(self) -> bool:
        return self.scan_after != BEGINNING

    @property
    def seconds_left(self) -> float:
        """Seconds until the next full scan is due, whichever endpoints are woken before."""
        left = inf
        if self._next_due is not None:
            left = (self._next_due - self._clock.now()).total_seconds()
        if self._skipped_since is not None:
            until = self._skipped_since + LONGEST_WITHOUT_SCAN_SECONDS
            left = min(left, until - self._clock.monotonic())
        return left

    @property
    def is_due(self) -> bool:
        return self.is_halfway or self.seconds_left <= 0

    def skipped(self, at: float) -> None:
        """The last claim examined only endpoints with a wake-up."""
        if self._skipped_since is None:
            self._skipped_since = at

    def done(self, scan: ScanProgress) -> None:
        self.scan_after = scan.reached
        self._next_due = scan.next_due
        self._skipped_since = None
