"""What the engine tells about itself while it works, and what the store knows of its backlog."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Result


class Telemetry(Protocol):
    def attempted(self, result: Result) -> None:
        """An attempt has ended; called once for each, before it is written down."""
        ...

    def recorded(self, results: int, superseded: int, at: datetime) -> None:
        """A group of results was written; `superseded` of them came after others took over."""
        ...

    def stalled(self, reason: str) -> None:
        """Deliveries have stopped although nothing keeps them from going on."""
        ...


class Silent:
    """Tells nobody."""

    def attempted(self, result: Result) -> None: ...

    def recorded(self, results: int, superseded: int, at: datetime) -> None: ...

    def stalled(self, reason: str) -> None: ...


@dataclass(frozen=True, slots=True)
class Waiting:
    """How many deliveries are in a state, and for how long the oldest of them has been due."""

    count: int = 0
    overdue: timedelta = timedelta(0)


class Backlog(Protocol):
    async def waiting(self, now: datetime) -> Mapping[DeliveryStatus, Waiting]:
        """Of each live state; counts are of the deliveries that are due first, not of millions."""
        ...
