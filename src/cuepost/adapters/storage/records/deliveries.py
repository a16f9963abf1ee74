"""Deliveries: the history of all, and the queue of those that are not ended."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records import delivery_pages as sql
from cuepost.adapters.storage.records import stops
from cuepost.adapters.storage.records.queue import load_targets
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Prepared
from cuepost.adapters.storage.tables import deliveries, queue
from cuepost.domain.delivery import (
    LIVE,
    CancelReason,
    Delivery,
    DeliveryStatus,
    Trigger,
)
from cuepost.domain.ids import instant_of, lowest_at
from cuepost.ports.history import DeliveryFilter, Outline
from cuepost.ports.records import Page

# Kept only once a delivery is sent again: until then `finished_at` tells it.
_FIRST_ACKNOWLEDGED = sa.func.coalesce(
    deliveries.c.delivered_at,
    sa.case((deliveries.c.final_status == DeliveryStatus.DELIVERED, deliveries.c.finished_at)),
)


class DeliveryRecords:
    def __init__(self, session: Session, outbox: Outbox) -> None:
        self._session = session
        self._outbox = outbox

    async def add(self, made: Sequence[Delivery]) -> None:
        await self._session.insert(deliveries, [_row_of(delivery) for delivery in made])
        live = [each for each in made if each.finished_at is None]
        await self._session.insert(
            queue, [_queue_row(each, self._outbox.lease(each)) for each in live]
        )
        reserved = {(each.account_id, each.webhook_id) for each in self._outbox.reserved}
        if reserved:
            now = self._outbox.reserved[0].created_at
            self._outbox.assign(await load_targets(self._session, reserved, now))

    async def get(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        return await self._one(sql.ONE, account_id, delivery_id)

    async def lock(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        return await self._one(sql.LOCKED, account_id, delivery_id)

    async def page(self, account_id: UUID, chosen: DeliveryFilter, page: Page) -> list[Delivery]:
        if chosen.status in LIVE and chosen.project_id is None and chosen.event_type is None:
            return await self._live_page(account_id, chosen, page)
        rows = await self._session.all(sql.page_of(account_id, chosen, page))
        return await self._complete(account_id, rows)

    async def outlines(
        self, account_id: UUID, webhook_id: UUID, since: datetime, limit: int
    ) -> list[Outline]:
        rows = await self._session.fetch(
            sql.OUTLINES,
            account=account_id,
            webhook=webhook_id,
            lowest=lowest_at(since),
            most=limit,
        )
        return [Outline(key, DeliveryStatus(status) if status else None) for key, status in rows]

    async def of_events(
        self, account_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, list[Delivery]]:
        found: dict[UUID, list[Delivery]] = defaultdict(list)
        if event_ids:
            rows = await self._session.unhurried.fetch(
                sql.OF_EVENTS,
                account=account_id,
                events=event_ids,
                lowest=sql.lowest_of(min(event_ids)),
            )
            for delivery in await self._complete(account_id, rows):
                found[delivery.event_id].append(delivery)
        return found

    async def retrying(self, account_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, int]:
        if not webhook_ids:
            return {}
        rows = await self._session.unhurried.fetch(
            sql.RETRYING, account=account_id, webhooks=webhook_ids
        )
        return dict(rows)

    async def stop_endpoint(
        self, account_id: UUID, webhook_id: UUID | None, reason: CancelReason, now: datetime
    ) -> None:
        if webhook_id is None:
            await stops.stop(self._session, stops.OF_ACCOUNT, reason, now, account=account_id)
            return
        chosen = {"account": account_id, "webhook": webhook_id}
        await stops.stop(self._session, stops.OF_ENDPOINT, reason, now, **chosen)

    async def stop_project(
        self, account_id: UUID, project_id: UUID, reason: CancelReason, now: datetime
    ) -> None:
        if reason is CancelReason.PROJECT_ACCESS_EXPIRED and not await stops.access_ended(
            self._session, account_id, project_id, now
        ):
            return
        chosen = {"account": account_id, "project": project_id}
        await stops.stop(self._session, stops.OF_PROJECT, reason, now, **chosen)

    async def send_again(
        self, account_id: UUID, delivery_ids: Sequence[UUID], now: datetime
    ) -> int:
        rows = await self._session.all(
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
                delivered_at=_FIRST_ACKNOWLEDGED,
            )
            .returning(*deliveries.c)
        )
        again = [_reopened(sql.Row._make(row), now) for row in rows]
        await self._session.insert(queue, [_queue_row(each) for each in again])
        for row in rows:
            self._outbox.wait(row.webhook_id)
        return len(rows)

    async def _one(
        self, statement: Prepared, account_id: UUID, delivery_id: UUID
    ) -> Delivery | None:
        rows = await self._session.fetch(statement, account=account_id, delivery=delivery_id)
        found = await self._complete(account_id, rows)
        return found[0] if found else None

    async def _live_page(
        self, account_id: UUID, chosen: DeliveryFilter, page: Page
    ) -> list[Delivery]:
        """In two steps: a join leaves the engine a choice, and it would read the whole history."""
        listed = await self._session.all(sql.queued_page(account_id, chosen, page))
        queued = {row.delivery_id: sql.Queued._make(row) for row in listed}
        if not queued:
            return []
        rows = await self._session.unhurried.fetch(sql.LISTED, account=account_id, ids=list(queued))
        return [delivery_from(row, queued[row.id]) for row in map(sql.Row._make, rows)]

    async def _complete(self, account_id: UUID, found: Sequence[Any]) -> list[Delivery]:
        """With what the queue knows of those that are not ended."""
        rows = [sql.Row._make(row) for row in found]
        live = [row.id for row in rows if row.final_status is None]
        queued: dict[UUID, sql.Queued] = {}
        if live:
            waiting = await self._session.fetch(sql.QUEUED, account=account_id, ids=live)
            queued = {row[0]: sql.Queued._make(row) for row in waiting}
        return [delivery_from(row, queued.get(row.id)) for row in rows]


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


def _queue_row(delivery: Delivery, lease: UUID | None = None) -> dict[str, Any]:
    return {
        "account_id": delivery.account_id,
        "delivery_id": delivery.id,
        "webhook_id": delivery.webhook_id,
        "event_id": delivery.event_id,
        "state": delivery.status if lease is None else DeliveryStatus.DELIVERING,
        "lease_token": lease,
        "due_at": delivery.next_attempt_at,
        "trigger": delivery.trigger,
        "budget": delivery.budget,
        "attempts_made": 0,
        "attempt_count": delivery.attempt_count,
    }


def _reopened(row: sql.Row, now: datetime) -> Delivery:
    return replace(delivery_from(row, None, DeliveryStatus.PENDING), next_attempt_at=now)


def delivery_from(row: sql.Row, queued: sql.Queued | None, status: str | None = None) -> Delivery:
    if status is None:
        status = row.final_status if queued is None else queued.state
    assert status is not None
    delivered = row.final_status == DeliveryStatus.DELIVERED
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
        delivered_at=row.delivered_at or (row.finished_at if delivered else None),
    )
