"""The protocol of an inbox store; `tests/test_stores.py` tests implementations."""

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
    """An event whose attempts all failed; it stays until it is revived or discarded."""

    event_id: str
    attempts: int
    error: str
    ended_at: float
    body: bytes = field(repr=False)


class InboxStore(Protocol):
    """Every method is one durable transaction and may be called from any process.

    Times are unix seconds. Any exception means that the change may not have happened.
    """

    def add(self, event_id: str, body: bytes, now: float) -> bool:
        """Store a new event, due at once; False if its id is already stored, in any state."""
        ...

    def claim(self, now: float, until: float) -> Claim | None:
        """Lease the event that has been due longest; an expired lease is due again."""
        ...

    def renew(self, claim: Claim, until: float) -> bool:
        """Extend the lease; False if it was lost to another worker."""
        ...

    def finish(self, claim: Claim, now: float) -> bool:
        """Mark the event as done and keep its id. False if the lease was lost."""
        ...

    def postpone(self, claim: Claim, due_at: float, error: str) -> bool:
        """Make the event due again at that time. False if the lease was lost."""
        ...

    def bury(self, claim: Claim, now: float, error: str) -> bool:
        """Make the event a dead letter. False if the lease was lost."""
        ...

    def dead_letters(self, limit: int) -> list[DeadLetter]:
        """Dead letters, oldest first."""
        ...

    def revive(self, event_id: str, now: float) -> bool:
        """Make a dead letter due at once, with all its attempts."""
        ...

    def discard(self, event_id: str, now: float) -> bool:
        """Remove a dead letter; its id is kept."""
        ...

    def forget(self, before: float) -> int:
        """Drop the ids of events that were done before that time; returns their number."""
        ...

    def counts(self) -> dict[str, int]:
        """How many events are `waiting`, `working`, `done` and `dead`; zeros may be omitted."""
        ...

    def close(self) -> None: ...
