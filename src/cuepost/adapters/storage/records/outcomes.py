"""Writing down what came of attempts, in groups.

A result moves its delivery while the delivery waits for this very attempt: leased to the worker
that made it, or to nobody since that worker's lease was lost. Other results are late, and are kept
as superseded attempts.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import health, late_results
from cuepost.adapters.storage.records.attempts import AttemptRecords
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import AmongPairs, Prepared
from cuepost.adapters.storage.tables import deliveries, queue
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.ports.dispatch import Assignment, Result, Verdict


class _Open(NamedTuple):
    """What the queue knows of a delivery that has not ended."""

    delivery_id: UUID
    stop_reason: str | None
    lease_token: UUID | None
    budget: int
    attempts_made: int

    def awaits(self, made: Assignment, worker: UUID) -> bool:
        """Whether it waits for the result of this attempt, made by that worker."""
        is_next = (self.budget, self.attempts_made) == (made.budget, made.number - 1)
        return is_next and self.lease_token in (worker, None)


def _open(among: AmongPairs) -> sa.Select[Any]:
    """By their keys: the index of leases has an entry for whatever was in flight since the last
    vacuum, and the longer the queue, the rarer that is."""
    are_given = among((queue.c.account_id, queue.c.delivery_id), "accounts", "deliveries")
    found = sa.select(*(queue.c[name] for name in _Open._fields)).where(are_given)
    # In the order in which whoever stops them locks them.
    return found.order_by(queue.c.delivery_id).with_for_update(of=queue)


def _open_and_health(among: AmongPairs) -> sa.Select[Any]:
    """Endpoints before the queue: who disables an endpoint locks in this order too."""
    changing = health.changing(among).cte("changing")
    locked = sa.select(sa.func.count()).select_from(changing).scalar_subquery()
    return (
        _open(among)
        .add_columns(*changing.c)
        .select_from(queue.outerjoin(changing, changing.c.id == queue.c.webhook_id))
        .where(locked >= sa.literal_column("0"))
    )


_OPEN = Prepared(_open)
_HEALTH = Prepared(health.changing)
# On PostgreSQL both in one trip.
OPEN_AND_HEALTH = Prepared(_open_and_health)
_QUEUE_KEY = ("account_id", "delivery_id")
_DELIVERY_KEY = ("account_id", "id")


class OutcomeRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def record(self, worker: UUID, results: Sequence[Result], now: datetime) -> int:
        waiting, changing = await self._open(results, now)
        valid, late, was_lost = [], [], []
        for each in results:
            # Out of the list, so that a second result of the same attempt is late.
            row = waiting.pop(each.assignment.delivery_id, None)
            if row is None or not row.awaits(each.assignment, worker):
                late.append(each)
                continue
            valid.append(_heeding(each, row.stop_reason))
            if row.lease_token is None:
                was_lost.append(each.assignment)
        again = [each for each in valid if each.verdict.due_at is not None]
        ended = [each for each in valid if each.verdict.due_at is None]
        await late_results.replace_interrupted(self._session, worker, was_lost)
        await self._session.delete(queue, _QUEUE_KEY, [_queue_key(each) for each in ended])
        await self._session.update(deliveries, _DELIVERY_KEY, [_ended(each, now) for each in ended])
        await self._session.update(queue, _QUEUE_KEY, [_due_again(each) for each in again])
        await self._session.update(deliveries, _DELIVERY_KEY, [_counted(each) for each in again])
        await AttemptRecords(self._session).add([each.attempt for each in valid])
        await health.note(self._session, changing, valid, now)
        return await late_results.keep(self._session, worker, late)

    async def _open(
        self, results: Sequence[Result], now: datetime
    ) -> tuple[dict[UUID, _Open], dict[UUID, health.Health]]:
        """Those of the deliveries that have not ended; and endpoints whose health may change."""
        chosen = health.chosen_by(results, now)
        theirs = {
            "accounts": [each.assignment.account_id for each in results],
            "deliveries": [each.assignment.delivery_id for each in results],
        }
        if self._session.dialect == "postgresql":
            rows = await self._session.fetch(OPEN_AND_HEALTH, **theirs, **chosen)
            facts = len(_Open._fields)
            found = [row[facts:] for row in rows if row[facts] is not None]
        else:
            ended = bool(chosen["health_webhooks"])
            found = list(await self._session.fetch(_HEALTH, **chosen)) if ended else []
            rows = await self._session.fetch(_OPEN, **theirs)
        changing = {webhook_id: (last, since) for webhook_id, last, since in found}
        listed = (_Open._make(row[: len(_Open._fields)]) for row in rows)
        return {each.delivery_id: each for each in listed}, changing


def _heeding(result: Result, stop: str | None) -> Result:
    """A delivery that was stopped in flight gets no further attempt."""
    if stop is None or result.verdict.due_at is None:
        return result
    verdict = Verdict(DeliveryStatus.CANCELLED, reason=CancelReason(stop))
    return replace(result, verdict=verdict)


def _queue_key(each: Result) -> dict[str, Any]:
    return {"account_id": each.assignment.account_id, "delivery_id": each.assignment.delivery_id}


def _due_again(each: Result) -> dict[str, Any]:
    return _queue_key(each) | {
        "state": each.verdict.status,
        "due_at": each.verdict.due_at,
        "attempts_made": each.assignment.number,
        "attempt_count": each.assignment.attempt_count + 1,
        "lease_token": None,
    }


def _counted(each: Result) -> dict[str, Any]:
    return {
        "account_id": each.assignment.account_id,
        "id": each.assignment.delivery_id,
        "attempt_count": each.assignment.attempt_count + 1,
    }


def _ended(each: Result, now: datetime) -> dict[str, Any]:
    return _counted(each) | {
        "final_status": each.verdict.status,
        "reason": each.verdict.reason,
        "finished_at": now,
    }
