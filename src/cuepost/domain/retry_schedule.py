"""When the next attempt of a budget is due."""

from dataclasses import dataclass
from datetime import datetime, timedelta

LARGEST_JITTER = 0.1


@dataclass(frozen=True, slots=True)
class RetrySchedule:
    """`pauses` are the waits after the end of the first, second, … attempt of a budget."""

    pauses: tuple[timedelta, ...]

    @property
    def attempts(self) -> int:
        return len(self.pauses) + 1

    def next_attempt_at(
        self, attempts_made: int, ended_at: datetime, jitter: float
    ) -> datetime | None:
        """None if the budget is spent; `jitter`, in [0, 1), adds up to a tenth of the pause."""
        if attempts_made >= self.attempts:
            return None
        pause = self.pauses[attempts_made - 1]
        return ended_at + pause * (1 + LARGEST_JITTER * jitter)
