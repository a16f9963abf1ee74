"""The queue: workers, the lanes they hold, and what they give back."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.claims import Claims
from cuepost.adapters.storage.records.targets import load_targets
from cuepost.adapters.storage.session import Session, upsert
from cuepost.adapters.storage.tables import IN_FLIGHT, deliveries, lanes, queue, workers
from cuepost.domain.delivery import DeliveryStatus
from cuepost.ports.dispatch import Claim, Claimed

__all__ = ["QueueRecords", "load_targets"]


class QueueRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def enlist(self, worker: UUID, until: datetime) -> None:
        await self._session.run(
            upsert(self._session, workers)
            .values(id=worker, alive_until=until)
            .on_conflict_do_update(index_elements=["id"], set_={"alive_until": until})
        )

    async def stay(self, worker: UUID, until: datetime) -> bool:
        touched = await self._session.run(
            sa.update(workers).where(workers.c.id == worker).values(alive_until=until)
        )
        return touched > 0

    async def dismiss(self, worker: UUID, now: datetime) -> None:
        await self._dismiss([worker], now)

    async def dismiss_all(self) -> None:
        """Their leases are left to `dismiss_dead`, as those of workers that nobody knows."""
        await self._session.run(sa.delete(lanes))
        await self._session.run(sa.delete(workers))

    async def dismiss_dead(self, now: datetime) -> int:
        dead = await self._session.all(
            sa.select(workers.c.id)
            .where(workers.c.alive_until <= now)
            .with_for_update(skip_locked=True)
        )
        # A lease can outlive its worker's row: committed in the moment in which it was dismissed.
        unknown = await self._session.all(
            sa.select(queue.c.lease_token)
            .where(
                IN_FLIGHT,
                queue.c.lease_token.not_in(sa.select(workers.c.id)),
            )
            .distinct()
        )
        await self._dismiss([row.id for row in dead] + [row.lease_token for row in unknown], now)
        return len(dead) + len(unknown)

    async def leased(self, worker: UUID) -> Collection[UUID]:
        rows = await self._session.all(
            sa.select(queue.c.delivery_id).where(queue.c.lease_token == worker)
        )
        return [row.delivery_id for row in rows]

    async def put_back(
        self, worker: UUID, delivery_ids: Collection[UUID], now: datetime, due_at: datetime | None
    ) -> None:
        if delivery_ids:
            theirs = sa.and_(
                queue.c.lease_token == worker, queue.c.delivery_id.in_(list(delivery_ids))
            )
            await self._release(theirs, now, {} if due_at is None else {"due_at": due_at})

    async def claim(self, wanted: Claim, now: datetime) -> Claimed:
        return await Claims(self._session).claim(wanted, now)

    async def fair_share(self, now: datetime) -> int:
        held = sa.select(sa.func.count()).select_from(lanes).scalar_subquery()
        alive = sa.select(sa.func.count()).where(workers.c.alive_until > now).scalar_subquery()
        [row] = await self._session.all(sa.select(held.label("held"), alive.label("alive")))
        share: int = math.ceil(row.held / max(1, row.alive))
        return share

    async def _dismiss(self, gone: Sequence[UUID], now: datetime) -> None:
        if not gone:
            return
        await self._release(queue.c.lease_token.in_(gone), now, {})
        await self._session.run(sa.delete(lanes).where(lanes.c.worker_id.in_(gone)))
        await self._session.run(sa.delete(workers).where(workers.c.id.in_(gone)))

    async def _release(
        self, held: sa.ColumnElement[bool], now: datetime, changed: Mapping[str, Any]
    ) -> None:
        """Back into the queue; what was stopped while a worker had it ends instead."""
        rows = await self._session.all(
            sa.select(queue.c.account_id, queue.c.delivery_id, queue.c.stop_reason)
            .where(held)
            .order_by(queue.c.delivery_id)
            .with_for_update()
        )
        await _end(self._session, [row for row in rows if row.stop_reason is not None], now)
        for state, which in (
            (DeliveryStatus.PENDING, queue.c.attempts_made == 0),
            (DeliveryStatus.RETRYING, queue.c.attempts_made > 0),
        ):
            await self._session.run(
                sa.update(queue)
                .where(held, which, queue.c.stop_reason.is_(None))
                .values({"state": state, "lease_token": None} | dict(changed))
            )


async def _end(session: Session, stopped: Sequence[sa.Row[Any]], now: datetime) -> None:
    """These were told to stop, and nobody is sending them."""
    await session.update(
        deliveries,
        ("account_id", "id"),
        [
            {
                "account_id": row.account_id,
                "id": row.delivery_id,
                "final_status": DeliveryStatus.CANCELLED,
                "reason": row.stop_reason,
                "finished_at": now,
            }
            for row in stopped
        ],
    )
    await session.delete(
        queue,
        ("account_id", "delivery_id"),
        [{"account_id": row.account_id, "delivery_id": row.delivery_id} for row in stopped],
    )
