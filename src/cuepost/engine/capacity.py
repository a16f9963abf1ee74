"""How much one process does and holds at a time."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capacity:
    """Attempts in flight in this process, and to one endpoint over all processes."""

    attempts: int
    per_endpoint: int

    @property
    def held(self) -> int:
        """In memory, so that nothing has to be waited for between two attempts."""
        return 8 * self.attempts

    @property
    def held_per_lane(self) -> int:
        return max(self.attempts, 2 * self.per_endpoint)
