"""A listener: a reader of the account's event stream, such as `cuepost listen`.

Events get their positions in the stream when they are found, and are not ordered by id: an id is
made before its transaction commits, so a smaller id may become visible after a larger one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.errors import PositionUnknown
from cuepost.domain.instants import lowest_at

# How far the clock of a process may be behind the others before its events are missed.
CLOCK_TOLERANCE = timedelta(minutes=1)
UNSERVED_LIFE = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class TransactionNumbers:
    """The number of a transaction, and the lowest number of the transactions that are open."""

    number: int
    oldest_open: int


@dataclass(frozen=True, slots=True)
class Mark:
    """Every transaction that writes an event earlier than `at` has at most this number."""

    at: datetime
    number: int

    def is_passed(self, numbers: TransactionNumbers) -> bool:
        return numbers.oldest_open > self.number

    def is_of_another_server(self, numbers: TransactionNumbers) -> bool:
        """The database was moved to a server with its own transaction numbers."""
        return numbers.number < self.number


@dataclass(frozen=True, slots=True)
class Listener:
    """All events with ids below `settled` are in the stream; later ones may still appear."""

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
        numbers: TransactionNumbers,
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
            mark=Mark(begin, numbers.number),
        )

    def acknowledging(self, up_to: int) -> "Listener":
        """Acknowledged events stay acknowledged, in whichever order the calls come."""
        if up_to > self.last_position:
            raise PositionUnknown(
                f"The last position that this listener has received is {self.last_position}."
            )
        return replace(self, acknowledged=max(self.acknowledged, up_to))

    def having_found(
        self, found: Sequence[UUID], *, is_all: bool, now: datetime, numbers: TransactionNumbers
    ) -> "Listener":
        """The listener after the found events got the next positions.

        Events below the new `settled` are not looked for again. `now` was read before the
        transaction got its number.
        """
        settled, mark = self.settled, self.mark
        if mark.is_passed(numbers):
            safe = lowest_at(mark.at - CLOCK_TOLERANCE)
            settled = max(settled, safe if is_all else min(safe, found[-1]))
        if mark.is_passed(numbers) or mark.is_of_another_server(numbers):
            mark = Mark(now, numbers.number)
        return replace(
            self, settled=settled, mark=mark, last_position=self.last_position + len(found)
        )
