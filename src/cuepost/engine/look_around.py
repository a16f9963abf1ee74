"""When to look around among all endpoints, and not only at those that are known to have work.

Whoever was announced is served at once, since a look around as well would take half as long again.
But not everything is announced: retries come due, workers die, and an announcement may be lost.
"""

from datetime import datetime, timedelta

from cuepost.engine.lane_board import LATEST
from cuepost.ports.dispatch import BEGINNING, Around

LONGEST_LEFT_OUT = timedelta(milliseconds=250)


class LookAround:
    def __init__(self) -> None:
        self.behind = BEGINNING
        self._next_due = LATEST
        self._left_out_since: datetime | None = None

    @property
    def is_halfway(self) -> bool:
        return self.behind != BEGINNING

    @property
    def by(self) -> datetime:
        """When the next one has to be, whoever is announced until then."""
        since = self._left_out_since
        return self._next_due if since is None else min(self._next_due, since + LONGEST_LEFT_OUT)

    def is_due(self, now: datetime) -> bool:
        since = self._left_out_since
        # Where the clock was set back, nobody knows for how long it was left out.
        return self.is_halfway or self.by <= now or (since is not None and now < since)

    def left_out(self, now: datetime) -> None:
        """Only those were served who had been announced."""
        self._left_out_since = self._left_out_since or now

    def done(self, around: Around) -> None:
        self.behind = around.reached
        self._next_due = around.next_due or LATEST
        self._left_out_since = None
