"""Writing down what came of attempts, in groups, only where the lease still holds."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import health
from cuepost.adapters.storage.records.attempts import AttemptRecords
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import AmongPairs, Prepared
from cuepost.adapters.storage.tables import deliveries, queue
from cuepost.domain.delivery import CancelReason, DeliveryStatus
from cuepost.ports.dispatch import Result, Verdict


def _held(among: AmongPairs) -> sa.Select[Any]:
    """By their keys: the index of leases has an entry for whatever was in flight since the last
    vacuum, and the longer the queue, the rarer that is."""
    are_given = among((queue.c.account_id, queue.c.delivery_id), "accounts", "deliveries")
    is_held = (queue.c.lease_token == sa.bindparam("worker")).is_(sa.true())
    found = sa.select(queue.c.delivery_id, queue.c.stop_reason).where(are_given, is_held)
    # In the order in which whoever stops them locks them.
    return found.order_by(queue.c.delivery_id).with_for_update(of=queue)


def _held_and_health(among: AmongPairs) -> sa.Select[Any]:
    """Endpoints before the queue: who disables an endpoint locks in this order too."""
    changing = health.changing(among).cte("changing")
    locked = sa.select(sa.func.count()).select_from(changing).scalar_subquery()
    return (
        _held(among)
        .add_columns(*changing.c)
        .select_from(queue.outerjoin(changing, changing.c.id == queue.c.webhook_id))
        .where(locked >= sa.literal_column("0"))
    )


_STILL_HELD = Prepared(_held)
_HEALTH = Prepared(health.changing)
# On PostgreSQL both in one trip.
STILL_HELD_AND_HEALTH = Prepared(_held_and_health)
_QUEUE_KEY = ("account_id", "delivery_id")
_DELIVERY_KEY = ("account_id", "id")


class OutcomeRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def record(self, worker: UUID, results: Sequence[Result], now: datetime) -> int:
        stops, changing = await self._still_held(worker, results, now)
        valid = [
            _heeding(each, stops[each.assignment.delivery_id])
            for each in results
            if each.assignment.delivery_id in stops
        ]
        again = [each for each in valid if each.verdict.due_at is not None]
        ended = [each for each in valid if each.verdict.due_at is None]
        await self._session.delete(queue, _QUEUE_KEY, [_queue_key(each) for each in ended])
        await self._session.update(deliveries, _DELIVERY_KEY, [_ended(each, now) for each in ended])
        await self._session.update(queue, _QUEUE_KEY, [_due_again(each) for each in again])
        await self._session.update(deliveries, _DELIVERY_KEY, [_counted(each) for each in again])
        await AttemptRecords(self._session).add([each.attempt for each in valid])
        await health.note(self._session, changing, valid, now)
        return len(results) - len(valid)

    async def _still_held(
        self, worker: UUID, results: Sequence[Result], now: datetime
    ) -> tuple[dict[UUID, str | None], dict[UUID, health.Health]]:
        """Why each of them is to stop, if it is; and the endpoints whose health may change."""
        chosen = health.chosen_by(results, now)
        theirs = {
            "accounts": [each.assignment.account_id for each in results],
            "deliveries": [each.assignment.delivery_id for each in results],
            "worker": worker,
        }
        if self._session.dialect == "postgresql":
            rows = await self._session.fetch(STILL_HELD_AND_HEALTH, **theirs, **chosen)
            found = [row[2:] for row in rows if row[2] is not None]
        else:
            ended = bool(chosen["health_webhooks"])
            found = list(await self._session.fetch(_HEALTH, **chosen)) if ended else []
            rows = await self._session.fetch(_STILL_HELD, **theirs)
        changing = {webhook_id: (last, since) for webhook_id, last, since in found}
        return {delivery_id: stop for delivery_id, stop, *_ in rows}, changing


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
