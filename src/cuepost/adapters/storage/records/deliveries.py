"""Deliveries: the history of all, and the queue of those that are not ended."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.paging import newest_first, within
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.tables import deliveries, endpoints, queue
from cuepost.domain.delivery import (
    LIVE,
    CancelReason,
    Delivery,
    DeliveryStatus,
    Trigger,
)
from cuepost.domain.ids import instant_of
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page


class DeliveryRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, made: Sequence[Delivery]) -> None:
        await self._session.insert(deliveries, [_row_of(delivery) for delivery in made])
        await self._session.insert(
            queue,
            [
                _queue_row(
                    each.account_id, each.id, each.webhook_id, each.event_id, each.created_at
                )
                for each in made
                if each.status is DeliveryStatus.PENDING
            ],
        )

    async def get(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        found = await self._complete(
            await self._session.all(_visible(account_id).where(deliveries.c.id == delivery_id))
        )
        return found[0] if found else None

    async def lock(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        statement = _visible(account_id).where(deliveries.c.id == delivery_id)
        found = await self._complete(
            await self._session.all(statement.with_for_update(of=deliveries))
        )
        return found[0] if found else None

    async def page(self, account_id: UUID, chosen: DeliveryFilter, page: Page) -> list[Delivery]:
        statement = _chosen(_visible(account_id), chosen)
        if chosen.status in LIVE:
            statement = statement.join(
                queue,
                sa.and_(
                    queue.c.account_id == account_id,
                    queue.c.delivery_id == deliveries.c.id,
                    queue.c.state == chosen.status,
                ),
            )
        elif chosen.status is not None:
            statement = statement.where(deliveries.c.final_status == chosen.status)
        statement = newest_first(statement, _leading_id(chosen), page)
        return await self._complete(await self._session.all(statement))

    async def of_events(
        self, account_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, list[Delivery]]:
        rows = await self._session.all(
            _visible(account_id)
            .where(deliveries.c.event_id.in_(event_ids))
            .order_by(deliveries.c.id)
        )
        found: dict[UUID, list[Delivery]] = defaultdict(list)
        for delivery in await self._complete(rows):
            found[delivery.event_id].append(delivery)
        return found

    async def retrying(self, account_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, int]:
        rows = await self._session.all(
            sa.select(queue.c.webhook_id, sa.func.count().label("total"))
            .where(
                queue.c.account_id == account_id,
                queue.c.webhook_id.in_(webhook_ids),
                queue.c.state == DeliveryStatus.RETRYING,
            )
            .group_by(queue.c.webhook_id)
        )
        return {row.webhook_id: row.total for row in rows}

    async def stop_endpoint(
        self, account_id: UUID, webhook_id: UUID | None, reason: CancelReason, now: datetime
    ) -> None:
        chosen = sa.true() if webhook_id is None else queue.c.webhook_id == webhook_id
        await self._stop(account_id, chosen, reason, now)

    async def stop_project(
        self, account_id: UUID, project_id: UUID, reason: CancelReason, now: datetime
    ) -> None:
        live = sa.select(deliveries.c.id).where(
            deliveries.c.account_id == account_id,
            deliveries.c.project_id == project_id,
            deliveries.c.final_status.is_(None),
        )
        await self._stop(account_id, queue.c.delivery_id.in_(live), reason, now)

    async def send_again(
        self, account_id: UUID, delivery_ids: Sequence[UUID], now: datetime
    ) -> int:
        reopened = await self._session.all(
            sa.update(deliveries)
            .where(
                deliveries.c.account_id == account_id,
                deliveries.c.id.in_(delivery_ids),
                deliveries.c.final_status.is_not(None),
            )
            .values(
                final_status=None,
                reason=None,
                finished_at=None,
                trigger=Trigger.MANUAL,
                budget=deliveries.c.budget + 1,
            )
            .returning(deliveries.c.id, deliveries.c.webhook_id, deliveries.c.event_id)
        )
        await self._session.insert(
            queue,
            [_queue_row(account_id, row.id, row.webhook_id, row.event_id, now) for row in reopened],
        )
        return len(reopened)

    async def _stop(
        self,
        account_id: UUID,
        chosen: sa.ColumnElement[bool],
        reason: CancelReason,
        now: datetime,
    ) -> None:
        mine = sa.and_(queue.c.account_id == account_id, chosen)
        waiting = sa.and_(mine, queue.c.state != DeliveryStatus.DELIVERING)
        # Locked first: a worker must not claim one of them between the statements below.
        locked = sa.select(queue.c.delivery_id).where(mine).with_for_update().subquery()
        await self._session.all(sa.select(sa.func.count()).select_from(locked))
        await self._session.run(sa.update(queue).where(mine, ~waiting).values(stop_reason=reason))
        await self._session.run(
            sa.update(deliveries)
            .where(
                deliveries.c.account_id == account_id,
                deliveries.c.id.in_(sa.select(queue.c.delivery_id).where(waiting)),
            )
            .values(final_status=DeliveryStatus.CANCELLED, reason=reason, finished_at=now)
        )
        ended = sa.select(deliveries.c.id).where(
            deliveries.c.account_id == account_id,
            deliveries.c.id == queue.c.delivery_id,
            deliveries.c.final_status.is_not(None),
        )
        await self._session.run(sa.delete(queue).where(mine, sa.exists(ended)))

    async def _complete(self, rows: Sequence[sa.Row[Any]]) -> list[Delivery]:
        """With what the queue knows of those that are not ended."""
        live = [row.id for row in rows if row.final_status is None]
        queued: dict[UUID, sa.Row[Any]] = {}
        if live:
            statement = sa.select(queue).where(
                queue.c.account_id == rows[0].account_id, queue.c.delivery_id.in_(live)
            )
            queued = {row.delivery_id: row for row in await self._session.all(statement)}
        return [delivery_from(row, queued.get(row.id)) for row in rows]


def _visible(account_id: UUID) -> sa.Select[Any]:
    """All but those of endpoints that are deleted and not yet cleared away."""
    deleted = sa.select(endpoints.c.id).where(
        endpoints.c.account_id == account_id, endpoints.c.deleted_at.is_not(None)
    )
    return sa.select(deliveries).where(
        deliveries.c.account_id == account_id, deliveries.c.webhook_id.not_in(deleted)
    )


def _chosen(statement: sa.Select[Any], chosen: DeliveryFilter) -> sa.Select[Any]:
    for column, value in (
        (deliveries.c.webhook_id, chosen.webhook_id),
        (deliveries.c.event_type, chosen.event_type),
        (deliveries.c.project_id, chosen.project_id),
        (deliveries.c.event_id, chosen.event_id),
    ):
        if value is not None:
            statement = statement.where(column == value)
    return within(statement, deliveries.c.id, chosen.since, chosen.until)


def _leading_id(chosen: DeliveryFilter) -> sa.ColumnElement[Any]:
    """The id of the table that narrows the choice most."""
    by_history = chosen.project_id is not None or chosen.event_id is not None
    return queue.c.delivery_id if chosen.status in LIVE and not by_history else deliveries.c.id


def _row_of(delivery: Delivery) -> dict[str, Any]:
    ended = delivery.finished_at is not None
    return {
        "account_id": delivery.account_id,
        "id": delivery.id,
        "webhook_id": delivery.webhook_id,
        "event_id": delivery.event_id,
        "event_type": delivery.event_type,
        "project_id": delivery.project_id,
        "trigger": delivery.trigger,
        "final_status": delivery.status if ended else None,
        "reason": delivery.reason,
        "attempt_count": delivery.attempt_count,
        "budget": delivery.budget,
        "finished_at": delivery.finished_at,
    }


def _queue_row(
    account_id: UUID, delivery_id: UUID, webhook_id: UUID, event_id: UUID, due_at: datetime
) -> dict[str, Any]:
    return {
        "account_id": account_id,
        "delivery_id": delivery_id,
        "webhook_id": webhook_id,
        "event_id": event_id,
        "state": DeliveryStatus.PENDING,
        "due_at": due_at,
        "attempts_made": 0,
    }


def delivery_from(row: sa.Row[Any], queued: sa.Row[Any] | None) -> Delivery:
    status = row.final_status if queued is None else queued.state
    waits = queued is not None and queued.state != DeliveryStatus.DELIVERING
    return Delivery(
        account_id=row.account_id,
        id=row.id,
        webhook_id=row.webhook_id,
        event_id=row.event_id,
        event_type=row.event_type,
        project_id=row.project_id,
        trigger=Trigger(row.trigger),
        status=DeliveryStatus(status),
        created_at=instant_of(row.id),
        reason=CancelReason(row.reason) if row.reason else None,
        attempt_count=row.attempt_count,
        budget=row.budget,
        next_attempt_at=queued.due_at if waits and queued is not None else None,
        finished_at=row.finished_at,
    )
