"""What the engine reports while it works, and the backlog in the store."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Result


class Telemetry(Protocol):
    def attempted(self, result: Result) -> None:
        """Called once for each attempt that has ended, before its result is recorded."""
        ...

    def late(self, results: int) -> None:
        """Called with how many of the recorded results came after another worker took over."""
        ...

    def stalled(self, reason: str) -> None:
        """Deliveries have stopped although work is due and there is capacity for it."""
        ...


class NoTelemetry:
    """Reports nothing."""

    def attempted(self, result: Result) -> None: ...

    def late(self, results: int) -> None: ...

    def stalled(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many deliveries are in a status, and for how long the oldest of them has been due."""

    count: int = 0
    overdue: timedelta = timedelta(0)


class Backlog(Protocol):
    async def waiting(self, now: datetime) -> Mapping[DeliveryStatus, Waiting]:
        """For each live status; counting stops at a limit, so that a large backlog costs little."""
        ...
