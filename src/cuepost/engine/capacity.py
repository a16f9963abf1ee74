"""How many attempts one process makes, and how many assignments it holds, at a time."""

from dataclasses import dataclass

from cuepost.tuning import HELD_AT_FIRST_PER_ATTEMPT, HELD_PER_ATTEMPT, HELD_PER_SLOT


@dataclass(frozen=True, slots=True)
class Capacity:
    """Attempts in flight in this process, and to one endpoint from all processes together."""

    attempts: int
    per_endpoint: int

    @property
    def held(self) -> int:
        """The most assignments in memory, when most of them wait for slow endpoints."""
        return HELD_PER_ATTEMPT * self.attempts

    @property
    def held_at_first(self) -> int:
        """Enough that no attempt waits for a claim."""
        return HELD_AT_FIRST_PER_ATTEMPT * self.attempts

    @property
    def held_per_lane(self) -> int:
        return max(self.attempts, HELD_PER_SLOT * self.per_endpoint)
