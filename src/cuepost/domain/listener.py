"""A listener: somebody who follows the account's events from their own machine.

The stream of a listener is numbered as its events are found, and not by their ids: an id is made
before its transaction commits, so a smaller one may appear after a larger one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.errors import PositionUnknown
from cuepost.domain.ids import lowest_at

# How far the clock of a process may be behind those of others before an event is overlooked.
CLOCK_TOLERANCE = timedelta(minutes=1)
UNSERVED_LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class Turn:
    """The number of a transaction, and the lowest number of those that are still open."""

    number: int
    oldest_open: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Whoever writes an event of an earlier time has a number that is not above this one."""

    at: datetime
    number: int

    def is_passed(self, turn: Turn) -> bool:
        return turn.oldest_open > self.number

    def is_of_another_count(self, turn: Turn) -> bool:
        """The database was moved to a server that counts its transactions anew."""
        return turn.number < self.number


@dataclass(frozen=True, slots=True)
class Listener:
    """Every event below `settled` that will ever be is in the stream; above it, look again."""

    account_id: UUID
    id: UUID
    name: str
    events: tuple[str, ...]
    created_at: datetime
    served_at: datetime
    settled: UUID
    mark: Mark
    acknowledged: int = 0
    last_position: int = 0

    @classmethod
    def registered(
        cls,
        account_id: UUID,
        listener_id: UUID,
        name: str,
        events: tuple[str, ...],
        *,
        now: datetime,
        turn: Turn,
    ) -> "Listener":
        begin = now - CLOCK_TOLERANCE
        return cls(
            account_id=account_id,
            id=listener_id,
            name=name,
            events=events,
            created_at=now,
            served_at=now,
            settled=lowest_at(begin),
            mark=Mark(begin, turn.number),
        )

    def acknowledging(self, up_to: int) -> "Listener":
        """What was acknowledged stays so, whichever order the calls come in."""
        if up_to > self.last_position:
            raise PositionUnknown(
                f"The last position that this listener was handed is {self.last_position}."
            )
        return replace(self, acknowledged=max(self.acknowledged, up_to))

    def having_found(
        self, found: Sequence[UUID], *, is_all: bool, now: datetime, turn: Turn
    ) -> "Listener":
        """The found events have the next positions; below `settled` nobody looks again.

        `now` was read before the transaction got its number.
        """
        settled, mark = self.settled, self.mark
        if mark.is_passed(turn):
            safe = lowest_at(mark.at - CLOCK_TOLERANCE)
            settled = max(settled, safe if is_all else min(safe, found[-1]))
        if mark.is_passed(turn) or mark.is_of_another_count(turn):
            mark = Mark(now, turn.number)
        return replace(
            self, settled=settled, mark=mark, last_position=self.last_position + len(found)
        )
