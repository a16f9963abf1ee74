"""Writes the results of attempts, in groups.

A result changes its delivery only while the delivery waits for this very attempt: it is leased to
the worker that made the attempt, or to no worker because that lease was lost. Other results are
late, and are kept as superseded attempts.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from cuepost.adapters.storage.records import health, late_results
from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.records.delivery_rows import (
    ADD_ATTEMPTS,
    ATTEMPT_COLUMNS,
    KEPT,
    KEY,
    attempt_row,
    attempt_values,
)
from cuepost.adapters.storage.row_writes import Row, deleted, inserted, updated
from cuepost.adapters.storage.session import Records
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.ports.dispatch import Assignment, Lane, NextStep, Result


class Open(NamedTuple):
    """The columns of `queue` that a result is checked against."""

    id: UUID
    stop_reason: CancelReason | None
    worker: UUID | None
    budget: int
    attempts_made: int

    def awaits(self, made: Assignment, worker: UUID) -> bool:
        """Whether it waits for the result of this attempt, made by that worker."""
        is_next = (self.budget, self.attempts_made) == (made.budget, made.number - 1)
        return is_next and self.worker in (worker, None)


_DUE_AGAIN = updated("queue", KEY, "status", "due_at", "attempts_made", "attempt_count", "worker")
_UNQUEUE = deleted("queue", *KEY)
ENDED = (*KEPT, "status", "reason", "finished_at", *ATTEMPT_COLUMNS)
ADD_ENDED = inserted("deliveries", *ENDED)


class OutcomeRecords(Records, ABC):
    """What both engines have in common."""

    async def record(self, worker: UUID, results: Sequence[Result], now: datetime) -> int:
        ended, changing = await self._end_leased(worker, results, now)
        recorded, late = results, list[Result]()
        if len(ended) < len(results):
            are_ended = set(map(id, ended))
            rest = [each for each in results if id(each) not in are_ended]
            waiting = await self._open(rest, now, changing)
            valid, late = await self._move(worker, rest, waiting, now)
            recorded = _in_order(results, [*ended, *valid])
        tally = Tally()
        for each in recorded:
            made, step = each.assignment, each.next_step
            tally.attempted(made.account, made.lane, each.attempt)
            if step.due_at is None:
                tally.ended(made.account, made.lane, made.delivery_id, step.status, made.number)
        await tally.write(self._session)
        if changing:
            await health.note(self._session, changing, recorded, now)
        return await late_results.keep(self._session, worker, late) if late else 0

    @abstractmethod
    async def _end_leased(
        self, worker: UUID, results: Sequence[Result], now: datetime
    ) -> tuple[Sequence[Result], dict[Lane, health.Remembered]]:
        """Ends deliveries that are leased for this very attempt, without reading them first.

        Returns the results that did, and the endpoints whose health may change. Of several results
        of one delivery the first counts.
        """

    @abstractmethod
    async def _open(
        self, rest: Sequence[Result], now: datetime, changing: dict[Lane, health.Remembered]
    ) -> dict[UUID, Open]:
        """The deliveries of the other results, locked, if they have not ended."""

    async def _move(
        self, worker: UUID, results: Sequence[Result], waiting: dict[UUID, Open], now: datetime
    ) -> tuple[list[Result], list[Result]]:
        """The results that changed their deliveries, and the late ones."""
        valid, late, was_lost = [], [], []
        for each in results:
            # Removed, so that a second result of the same attempt is late.
            row = waiting.pop(each.assignment.delivery_id, None)
            if row is None or not row.awaits(each.assignment, worker):
                late.append(each)
                continue
            valid.append(_with_stop(each, row.stop_reason))
            if row.worker is None:
                was_lost.append(each.assignment)
        await late_results.replace_interrupted(self._session, worker, was_lost)
        await self._end([each for each in valid if each.next_step.due_at is None], now)
        await self._put_back([each for each in valid if each.next_step.due_at is not None])
        return valid, late

    async def _end(self, ended: Sequence[Result], now: datetime) -> None:
        rows = [ended_row(each, now) for each in ended]
        await self._session.write(_UNQUEUE, [row[:2] for row in rows])
        await self._session.write(ADD_ENDED, rows)

    async def _put_back(self, again: Sequence[Result]) -> None:
        made = [attempt_row(each.attempt, each.assignment.account) for each in again]
        await self._session.write(_DUE_AGAIN, [_due_again(each) for each in again])
        await self._session.write(ADD_ATTEMPTS, made)


def _in_order(results: Sequence[Result], recorded: Sequence[Result]) -> list[Result]:
    """Those that were recorded, as their attempts ended; a stop may have changed what follows."""
    by_attempt = {id(each.attempt): each for each in recorded}
    return [by_attempt[key] for each in results if (key := id(each.attempt)) in by_attempt]


def by_id(rows: Sequence[Sequence[Any]]) -> dict[UUID, Open]:
    found = (Open._make(row[: len(Open._fields)]) for row in rows)
    return {each.id: each for each in found}


def _with_stop(result: Result, stop: CancelReason | None) -> Result:
    """A delivery that was stopped in flight gets no further attempt."""
    if stop is None or result.next_step.due_at is None:
        return result
    return replace(result, next_step=NextStep(DeliveryStatus.CANCELLED, reason=stop))


def _due_again(each: Result) -> Row:
    made, step = each.assignment, each.next_step
    again = (step.status, step.due_at, made.number, made.attempt_count + 1, None)
    return *again, made.account, made.delivery_id


def ended_row(each: Result, now: datetime) -> Row:
    """In the order of `ENDED`."""
    made = each.assignment
    return (
        made.account,
        made.delivery_id,
        made.lane,
        made.event_id,
        made.event_type,
        made.project_id,
        made.trigger,
        made.attempt_count + 1,
        made.budget,
        made.delivered_at,
        each.next_step.status,
        each.next_step.reason,
        now,
        *attempt_values(each.attempt),
    )
