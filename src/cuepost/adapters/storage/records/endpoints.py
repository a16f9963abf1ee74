"""Webhook endpoints, their signing secrets, and the clearing away of deleted ones."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.records.numbers import numbers_of
from cuepost.adapters.storage.session import Session, first, upsert
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import (
    HALVES,
    accounts,
    attempts,
    bulk_retries,
    deliveries,
    endpoints,
    lanes,
    queue,
    signing_secrets,
)
from cuepost.domain.delivery import CancelReason
from cuepost.domain.endpoint import Endpoint, StoredSecret
from cuepost.domain.fanout import Subscriber
from cuepost.ports.records import Page

HISTORY_CLEARED_AT_ONCE = 1_000
_COLUMNS = tuple(column for column in endpoints.c if column.name not in {"number", "deleted_at"})
_PRESENT = sa.select(*_COLUMNS).where(
    endpoints.c.account_id == sa.bindparam("account"), endpoints.c.deleted_at.is_(None)
)
_ONE = _PRESENT.where(endpoints.c.id == sa.bindparam("webhook"))
_FOUND = Prepared(_ONE)
_LOCKED = Prepared(_ONE.with_for_update())
_PAGE = paging.prepared(_PRESENT, endpoints.c.id)
_COUNT = Prepared(_PRESENT.with_only_columns(sa.func.count(), maintain_column_froms=True))
_SECRETS = Prepared(
    sa.select(
        signing_secrets.c.webhook_id,
        signing_secrets.c.version,
        signing_secrets.c.sealed,
        signing_secrets.c.hint,
        signing_secrets.c.created_at,
        signing_secrets.c.expires_at,
    ).where(
        signing_secrets.c.account_id == sa.bindparam("account"),
        Among(signing_secrets.c.webhook_id, "webhooks"),
    )
)
# The account is part of it, so that access cannot be closed in between either. Whoever changes an
# endpoint or an account locks the row for update and waits for this lock; a recorder that moves an
# endpoint's health does not.
_SUBSCRIBERS = Prepared(
    sa.select(
        endpoints.c.account_id,
        endpoints.c.id,
        endpoints.c.events,
        endpoints.c.enabled,
        accounts.c.webhooks_enabled,
        endpoints.c.number,
        accounts.c.number,
        lanes.c.worker_id,
    )
    .select_from(
        endpoints.join(accounts, accounts.c.id == endpoints.c.account_id).outerjoin(
            lanes, sa.and_(lanes.c.endpoint == endpoints.c.number, lanes.c.accepts)
        )
    )
    .where(Among(endpoints.c.account_id, "account_ids"), endpoints.c.deleted_at.is_(None))
    .order_by(endpoints.c.id)
    .with_for_update(read=True, key_share=True, of=(endpoints, accounts))
)
_CLEAR_ATTEMPTS = Prepared(
    sa.delete(attempts).where(
        attempts.c.account == sa.bindparam("account"), Among(attempts.c.delivery_id, "ids")
    )
)
_CLEAR_DELIVERIES = Prepared(
    sa.delete(deliveries).where(
        deliveries.c.account == sa.bindparam("account"), Among(deliveries.c.id, "ids")
    )
)


class EndpointRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, endpoint: Endpoint, secret: StoredSecret) -> None:
        await self._session.insert(
            endpoints,
            [
                {
                    "account_id": endpoint.account_id,
                    "id": endpoint.id,
                    "created_at": endpoint.created_at,
                }
                | _mutable(endpoint)
            ],
        )
        await self.put_secret(endpoint.account_id, endpoint.id, secret)

    async def get(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None:
        return await self._one(_FOUND, account_id, webhook_id)

    async def lock(self, account_id: UUID, webhook_id: UUID) -> Endpoint | None:
        return await self._one(_LOCKED, account_id, webhook_id)

    async def count(self, account_id: UUID) -> int:
        [(count,)] = await self._session.fetch(_COUNT, account=account_id)
        return int(count)

    async def page(self, account_id: UUID, page: Page) -> list[Endpoint]:
        rows = await self._session.unhurried.fetch(_PAGE, account=account_id, **paging.bounds(page))
        return [_endpoint(row) for row in rows]

    async def save(self, endpoint: Endpoint) -> None:
        key = {"account_id": endpoint.account_id, "id": endpoint.id}
        await self._session.update(endpoints, tuple(key), [key | _mutable(endpoint)])

    async def delete(self, account_id: UUID, webhook_id: UUID, now: datetime) -> None:
        await self._session.run(
            sa.update(endpoints)
            .where(endpoints.c.account_id == account_id, endpoints.c.id == webhook_id)
            .values(deleted_at=now, enabled=False, url="")
        )
        for table in (signing_secrets, bulk_retries):
            await self._session.run(sa.delete(table).where(_of(table, account_id, webhook_id)))
        numbers = await numbers_of(self._session, account_id)
        account, endpoint = numbers.account, numbers.endpoint(webhook_id)
        # One statement: between two of them a delivery could go from one half to the other.
        is_its = sa.and_(queue.c.account == account, queue.c.endpoint == endpoint)
        halves = (sa.and_(half, is_its) for half in HALVES)
        gone = sa.delete(queue).where(sa.or_(*halves)).returning(queue.c.id)
        ids = [row.id for row in await self._session.unhurried.all(gone)]
        for first_id in range(0, len(ids), HISTORY_CLEARED_AT_ONCE):
            some = ids[first_id : first_id + HISTORY_CLEARED_AT_ONCE]
            await self._session.unhurried.fetch(_CLEAR_ATTEMPTS, account=account, ids=some)
        await self._purge(account, endpoint, HISTORY_CLEARED_AT_ONCE)

    async def purge_deleted(self, rows: int) -> bool:
        row = await first(
            self._session,
            sa.select(accounts.c.number.label("account"), endpoints.c.number)
            .join(accounts, accounts.c.id == endpoints.c.account_id)
            .where(endpoints.c.deleted_at.is_not(None))
            .limit(1)
            .with_for_update(skip_locked=True, of=endpoints),
        )
        if row is None:
            return False
        await self._purge(row.account, row.number, rows)
        return True

    async def subscribers(self, account_ids: Collection[UUID]) -> dict[UUID, list[Subscriber]]:
        found: dict[UUID, list[Subscriber]] = {}
        rows = await self._session.fetch(_SUBSCRIBERS, account_ids=list(account_ids))
        numbers = self._session.numbers
        for account_id, webhook_id, events, enabled, is_open, endpoint, account, worker in rows:
            numbers.accounts[account_id] = account
            numbers.endpoints[webhook_id] = endpoint
            if worker is not None:
                numbers.accepting[endpoint] = worker
            stopped = None if enabled and is_open else _why_stopped(is_open)
            subscriber = Subscriber(webhook_id, frozenset(events.split()), stopped)
            found.setdefault(account_id, []).append(subscriber)
        return found

    async def secrets(
        self, account_id: UUID, webhook_ids: Sequence[UUID]
    ) -> dict[UUID, list[StoredSecret]]:
        found: dict[UUID, list[StoredSecret]] = defaultdict(list)
        if webhook_ids:
            rows = await self._session.fetch(_SECRETS, account=account_id, webhooks=webhook_ids)
            for webhook_id, *facts in rows:
                found[webhook_id].append(StoredSecret(*facts))
        return found

    async def put_secret(self, account_id: UUID, webhook_id: UUID, secret: StoredSecret) -> None:
        await self._session.run(
            upsert(self._session, signing_secrets)
            .values(
                account_id=account_id,
                webhook_id=webhook_id,
                version=secret.version,
                sealed=secret.sealed,
                hint=secret.hint,
                created_at=secret.created_at,
                expires_at=secret.expires_at,
            )
            .on_conflict_do_update(
                index_elements=["account_id", "webhook_id", "version"],
                set_={"expires_at": secret.expires_at},
            )
        )

    async def drop_secret(self, account_id: UUID, webhook_id: UUID, version: int) -> None:
        await self._session.run(
            sa.delete(signing_secrets).where(
                signing_secrets.c.account_id == account_id,
                signing_secrets.c.webhook_id == webhook_id,
                signing_secrets.c.version == version,
            )
        )

    async def _one(
        self, statement: Prepared, account_id: UUID, webhook_id: UUID
    ) -> Endpoint | None:
        rows = await self._session.fetch(statement, account=account_id, webhook=webhook_id)
        return _endpoint(rows[0]) if rows else None

    async def _purge(self, account: int, endpoint: int, rows: int) -> None:
        """Some of its history, and once that is gone the endpoint's own row."""
        chosen = (
            sa.select(deliveries.c.id)
            .where(deliveries.c.account == account, deliveries.c.endpoint == endpoint)
            .limit(rows)
        )
        ids = [row.id for row in await self._session.unhurried.all(chosen)]
        for clear in (_CLEAR_ATTEMPTS, _CLEAR_DELIVERIES):
            if ids:
                await self._session.unhurried.fetch(clear, account=account, ids=ids)
        if len(ids) < rows:
            await self._session.run(sa.delete(endpoints).where(endpoints.c.number == endpoint))


def _why_stopped(is_open: bool) -> CancelReason:
    """While access is closed that is the reason, whether or not the endpoint is disabled too."""
    return CancelReason.ENDPOINT_DISABLED if is_open else CancelReason.ACCESS_CLOSED


def _of(table: sa.Table, account_id: UUID, webhook_id: UUID) -> sa.ColumnElement[bool]:
    return sa.and_(table.c.account_id == account_id, table.c.webhook_id == webhook_id)


def _mutable(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "events": " ".join(endpoint.events),
        "description": endpoint.description,
        "enabled": endpoint.enabled,
        "updated_at": endpoint.updated_at,
        "last_delivered_at": endpoint.last_delivered_at,
        "failing_since": endpoint.failing_since,
    }


def _endpoint(row: Sequence[Any]) -> Endpoint:
    account_id, webhook_id, url, events, *others = row
    return Endpoint(account_id, webhook_id, url, tuple(events.split()), *others)
