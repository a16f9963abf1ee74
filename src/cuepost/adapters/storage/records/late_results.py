"""Results of attempts whose delivery is no longer leased to the worker that made them.

When a worker is removed, each delivery it held gets an interrupted attempt. If the worker reports
a result later, the result replaces that attempt, so that each request is recorded once.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuepost.adapters.storage.records.attempts import add_uncounted
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import by_keys
from cuepost.domain.attempt import UNCOUNTED, Attempt, Outcome, superseded
from cuepost.ports.dispatch import Assignment, Result


class _Recorded(NamedTuple):
    account: int
    delivery_id: UUID
    budget: int
    number: int
    started_at: datetime
    outcome: Outcome
    held_by: UUID | None

    def was_interrupted(self, worker: UUID) -> bool:
        return self.outcome == Outcome.INTERRUPTED and self.held_by == worker

    def is_of(self, made: Attempt, worker: UUID) -> bool:
        """Whether it is the record of this attempt, made by that worker."""
        if (self.delivery_id, self.started_at) != (made.delivery_id, made.started_at):
            return False
        if self.budget == UNCOUNTED:
            return self.outcome == Outcome.SUPERSEDED and self.held_by == worker
        return (self.budget, self.number) == (made.budget, made.number)


_RECORDED = by_keys(
    f"SELECT {', '.join(_Recorded._fields)} FROM attempts", "account", "delivery_id"
)
_ENDED = by_keys("SELECT id, budget, number, started_at FROM deliveries", "account", "id")
_LIVE = by_keys("SELECT id FROM queue", "account", "id")
_KEY = ("account", "delivery_id", "budget", "number")


async def replace_interrupted(
    session: StoreSession, worker: UUID, reported: Sequence[Assignment]
) -> None:
    """Removes the interrupted attempts of these deliveries, because their results arrived."""
    rows = await _recorded(session, reported)
    await _remove(session, [row for row in rows if row.was_interrupted(worker)])


async def keep(session: StoreSession, worker: UUID, late: Sequence[Result]) -> int:
    """Stores them as superseded attempts unless already recorded; the number of new ones."""
    keys = keys_of([each.assignment for each in late])
    rows = await _recorded(session, [each.assignment for each in late])
    ended = {(key, *made) for key, *made in await session.fetch(_ENDED, **keys)}
    new = [
        each
        for each in late
        if _ended_with(each.attempt) not in ended
        and not any(row.is_of(each.attempt, worker) for row in rows)
    ]
    # Deliveries of a deleted endpoint no longer exist.
    standing = {key for key, *_ in ended}
    standing |= {key for (key,) in await session.fetch(_LIVE, **keys)}
    kept = [each for each in new if each.assignment.delivery_id in standing]
    theirs = {each.assignment.delivery_id for each in kept}
    mine = [row for row in rows if row.delivery_id in theirs and row.was_interrupted(worker)]
    await _remove(session, mine)
    await add_uncounted(
        session, [(each.assignment.account, worker, superseded(each.attempt)) for each in kept]
    )
    return len(new)


def _ended_with(made: Attempt) -> tuple[UUID, int, int, datetime]:
    return made.delivery_id, made.budget, made.number, made.started_at


async def _recorded(session: StoreSession, of: Sequence[Assignment]) -> list[_Recorded]:
    if not of:
        return []
    return [_Recorded._make(row) for row in await session.fetch(_RECORDED, **keys_of(of))]


def keys_of(of: Sequence[Assignment]) -> dict[str, Sequence[object]]:
    return {
        "accounts": [each.account for each in of],
        "deliveries": [each.delivery_id for each in of],
    }


async def _remove(session: StoreSession, rows: Sequence[_Recorded]) -> None:
    if rows:
        keys = [{name: getattr(row, name) for name in _KEY} for row in rows]
        await session.delete("attempts", _KEY, keys)
