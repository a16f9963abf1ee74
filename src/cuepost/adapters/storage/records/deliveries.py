"""Deliveries: the history of all, and the queue of those that are not ended."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.records.delivery_pages import (
    OUTLINES,
    in_state,
    not_before,
    page_of,
    queued_page,
    visible,
)
from cuepost.adapters.storage.records.queue import load_targets
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import IN_FLIGHT, WAITING, deliveries, projects, queue
from cuepost.adapters.storage.types import Instant
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

STOPPED_AT_ONCE = 1_000
_CANCEL = Prepared(
    sa.update(deliveries)
    .where(deliveries.c.account_id == sa.bindparam("account"), Among(deliveries.c.id, "ids"))
    .values(
        final_status=sa.literal_column(f"'{DeliveryStatus.CANCELLED}'"),
        reason=sa.bindparam("why", type_=sa.Text),
        finished_at=sa.bindparam("at", type_=Instant),
    )
)
_UNQUEUE = Prepared(
    sa.delete(queue).where(
        queue.c.account_id == sa.bindparam("account"), Among(queue.c.delivery_id, "ids")
    )
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
        found = await self._complete(
            await self._session.all(visible(account_id).where(deliveries.c.id == delivery_id))
        )
        return found[0] if found else None

    async def lock(self, account_id: UUID, delivery_id: UUID) -> Delivery | None:
        statement = visible(account_id).where(deliveries.c.id == delivery_id)
        found = await self._complete(
            await self._session.all(statement.with_for_update(of=deliveries))
        )
        return found[0] if found else None

    async def page(self, account_id: UUID, chosen: DeliveryFilter, page: Page) -> list[Delivery]:
        if chosen.status in LIVE and chosen.project_id is None and chosen.event_type is None:
            return await self._live_page(account_id, chosen, page)
        statement = page_of(account_id, chosen, page)
        return await self._complete(await self._session.all(statement))

    async def outlines(
        self, account_id: UUID, webhook_id: UUID, since: datetime, limit: int
    ) -> list[Outline]:
        rows = await self._session.fetch(
            OUTLINES, account=account_id, webhook=webhook_id, lowest=lowest_at(since), most=limit
        )
        return [Outline(key, DeliveryStatus(status) if status else None) for key, status in rows]

    async def of_events(
        self, account_id: UUID, event_ids: Sequence[UUID]
    ) -> dict[UUID, list[Delivery]]:
        found: dict[UUID, list[Delivery]] = defaultdict(list)
        if event_ids:
            rows = await self._session.all(
                visible(account_id)
                .where(deliveries.c.event_id.in_(event_ids), not_before(min(event_ids)))
                .order_by(deliveries.c.id)
            )
            for delivery in await self._complete(rows):
                found[delivery.event_id].append(delivery)
        return found

    async def retrying(self, account_id: UUID, webhook_ids: Sequence[UUID]) -> dict[UUID, int]:
        rows = await self._session.all(
            sa.select(queue.c.webhook_id, sa.func.count().label("total"))
            .where(
                queue.c.account_id == account_id,
                queue.c.webhook_id.in_(webhook_ids),
                in_state(DeliveryStatus.RETRYING),
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
        if reason is CancelReason.PROJECT_ACCESS_EXPIRED and not await self._access_ended(
            account_id, project_id, now
        ):
            return
        its_own = sa.select(deliveries.c.id).where(
            deliveries.c.account_id == account_id, deliveries.c.project_id == project_id
        )
        await self._stop(account_id, queue.c.delivery_id.in_(its_own), reason, now)

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
            )
            .returning(*deliveries.c)
        )
        await self._session.insert(queue, [_queue_row(_reopened(row, now)) for row in rows])
        for row in rows:
            self._outbox.wait(row.webhook_id)
        return len(rows)

    async def _access_ended(self, account_id: UUID, project_id: UUID, now: datetime) -> bool:
        """Note it down; False when the access window was extended meanwhile.

        It comes first, because it waits for whoever is reporting of the project right now.
        """
        noted = await self._session.run(
            sa.update(projects)
            .where(
                projects.c.account_id == account_id,
                projects.c.id == project_id,
                projects.c.access_expires_at <= now,
            )
            .values(access_ended_at=now)
        )
        return noted > 0

    async def _stop(
        self,
        account_id: UUID,
        chosen: sa.ColumnElement[bool],
        reason: CancelReason,
        now: datetime,
    ) -> None:
        session = self._session.unhurried
        waiting = sa.and_(WAITING, queue.c.account_id == account_id, chosen)
        in_flight = sa.and_(IN_FLIGHT, queue.c.account_id == account_id, chosen)
        if session.dialect == "postgresql":
            # All are locked first, in the order of ids: no worker may claim one of them meanwhile.
            both = sa.select(queue.c.delivery_id).where(sa.or_(waiting, in_flight))
            locked = both.order_by(queue.c.delivery_id).with_for_update().subquery()
            await session.all(sa.select(sa.func.count()).select_from(locked))
        await session.run(sa.update(queue).where(in_flight).values(stop_reason=reason))
        some = sa.select(queue.c.delivery_id).where(waiting).limit(STOPPED_AT_ONCE)
        while ids := [row.delivery_id for row in await session.all(some)]:
            await session.fetch(_CANCEL, account=account_id, ids=ids, why=reason, at=now)
            await session.fetch(_UNQUEUE, account=account_id, ids=ids)

    async def _live_page(
        self, account_id: UUID, chosen: DeliveryFilter, page: Page
    ) -> list[Delivery]:
        """In two steps: a join leaves the engine a choice, and it would read the whole history."""
        queued = {
            row.delivery_id: row
            for row in await self._session.all(queued_page(account_id, chosen, page))
        }
        if not queued:
            return []
        rows = await self._session.all(
            visible(account_id).where(deliveries.c.id.in_(queued)).order_by(deliveries.c.id.desc())
        )
        return [delivery_from(row, queued[row.id]) for row in rows]

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


def _reopened(row: sa.Row[Any], now: datetime) -> Delivery:
    return replace(delivery_from(row, None, DeliveryStatus.PENDING), next_attempt_at=now)


def delivery_from(
    row: sa.Row[Any], queued: sa.Row[Any] | None, status: str | None = None
) -> Delivery:
    if status is None:
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
