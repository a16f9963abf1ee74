"""What the delivery engine of a process is doing, for the watchdog and for operators."""

from dataclasses import dataclass, fields
from uuid import UUID


@dataclass(frozen=True, slots=True)
class EngineState:
    """`progress` is the number of attempts begun plus the number of results recorded.

    `sleeps_until` is an instant of the monotonic clock.
    """

    worker: UUID
    running: bool
    stopping: bool
    lease_held: bool
    progress: int
    in_flight: int
    held: int
    lanes_ready: int
    unrecorded: int
    memory_full: bool
    backlog: bool
    sleeps_until: float | None

    def __str__(self) -> str:
        return " ".join(f"{each.name}={getattr(self, each.name)}" for each in fields(self))
