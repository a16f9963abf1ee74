"""When to full scan among all endpoints, and not only at those that are known to have work.

Whoever was announced is served at once, since a full scan as well would take half as long again.
But not everything is announced: retries come due, workers die, and an announcement may be lost.
"""

from datetime import datetime
from math import inf

from cuepost.ports.dispatch import BEGINNING, ScanProgress
from cuepost.ports.system import Clock
from cuepost.tuning import LONGEST_LEFT_OUT_SECONDS


class FullScan:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.behind = BEGINNING
        self._next_due: datetime | None = None
        self._left_out_since: float | None = None

    @property
    def is_halfway(self) -> bool:
        return self.behind != BEGINNING

    @property
    def seconds_left(self) -> float:
        """Until the next one has to be, whoever is announced until then."""
        left = inf
        if self._next_due is not None:
            left = (self._next_due - self._clock.now()).total_seconds()
        if self._left_out_since is not None:
            until = self._left_out_since + LONGEST_LEFT_OUT_SECONDS
            left = min(left, until - self._clock.monotonic())
        return left

    @property
    def is_due(self) -> bool:
        return self.is_halfway or self.seconds_left <= 0

    def left_out(self, at: float) -> None:
        """The last claim looked only at endpoints that had been announced."""
        if self._left_out_since is None:
            self._left_out_since = at

    def done(self, scan: ScanProgress) -> None:
        self.behind = scan.reached
        self._next_due = scan.next_due
        self._left_out_since = None
