"""What an inbox needs of its store; `tests/test_stores.py` is the suite for one of your own."""

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Claim:
    """One event that this worker may handle until its lease ends; `attempt` counts from 1."""

    event_id: str
    lease: str
    attempt: int
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """An event whose handler failed for good; it stays until it is revived or discarded."""

    event_id: str
    attempts: int
    error: str
    ended_at: float
    body: bytes = field(repr=False)


class InboxStore(Protocol):
    """Every method is one transaction, durable when it returns, and safe from any process.

    Times are unix seconds. Any exception means that the change may not have happened.
    """

    def add(self, event_id: str, body: bytes, now: float) -> bool:
        """Keep a new event, due at once; False if its id was there already, in whatever state."""
        ...

    def claim(self, now: float, until: float) -> Claim | None:
        """Lease the event that has been due for longest; a lease that has ended is due again."""
        ...

    def renew(self, claim: Claim, until: float) -> bool:
        """Lengthen the lease; False if it was lost to somebody else."""
        ...

    def finish(self, claim: Claim, now: float) -> bool:
        """The event is done; its id is remembered. False if the lease was lost."""
        ...

    def postpone(self, claim: Claim, due_at: float, error: str) -> bool:
        """Due again at that time. False if the lease was lost."""
        ...

    def bury(self, claim: Claim, now: float, error: str) -> bool:
        """Into the dead-letter list. False if the lease was lost."""
        ...

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        """The oldest first."""
        ...

    def revive(self, event_id: str, now: float) -> bool:
        """Out of the dead-letter list, due at once, with all its attempts before it."""
        ...

    def discard(self, event_id: str, now: float) -> bool:
        """Out of the dead-letter list for good; its id is still remembered."""
        ...

    def forget(self, before: float) -> int:
        """Drop the ids of events that were done before that time; how many."""
        ...

    def counts(self) -> dict[str, int]:
        """How many are `waiting`, `working`, `done` and `dead`; those with none may be left out."""
        ...

    def close(self) -> None: ...
