"""Webhook endpoints, their signing secrets, and the removal of deleted ones."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.columns import IN_FLIGHT, WAITING
from cuepost.adapters.storage.records import alerts, counts, paging
from cuepost.adapters.storage.session import Records, StoreSession, numbers_of
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.delivery import CancelReason
from cuepost.domain.endpoint import Endpoint, StoredSecret
from cuepost.domain.event import Subscriber
from cuepost.ports.dispatch import Lane, Target
from cuepost.ports.records import Page

HISTORY_CLEARED_AT_ONCE = 1_000
_SELECT = f"SELECT {', '.join(field.name for field in fields(Endpoint))} FROM endpoints"
_PRESENT = "account_id = :account AND deleted_at IS NULL"
_ONE = f"{_SELECT} WHERE {_PRESENT} AND id = :webhook"
_FOUND = Sql(_ONE)
_LOCKED = Sql(f"{_ONE} FOR UPDATE")
_PAGE = paging.pages(f"{_SELECT} WHERE {_PRESENT}")
_COUNT = Sql(f"SELECT count(*) AS count FROM endpoints WHERE {_PRESENT}")
_SECRETS = Sql(
    """
    SELECT webhook_id, version, sealed, hint, created_at, expires_at FROM signing_secrets
    WHERE account_id = :account AND webhook_id IN :webhooks
    """
)
_PUT_SECRET = Sql(
    """
    INSERT INTO signing_secrets
        (account_id, webhook_id, version, sealed, hint, created_at, expires_at)
    VALUES (:account, :webhook, :version, :sealed, :hint, :created_at, :expires_at)
    ON CONFLICT (account_id, webhook_id, version) DO UPDATE SET expires_at = excluded.expires_at
    """
)
# The account is locked too, so that access cannot be closed in between. A change of an endpoint or
# an account locks the row for update and waits for this lock; a change of an endpoint's health
# does not.
_SUBSCRIBERS = Sql(
    """
    SELECT endpoints.account_id, endpoints.id, endpoints.events, endpoints.enabled,
        accounts.webhooks_enabled, endpoints.number, accounts.number AS account, accounts.state,
        lanes.worker_id
    FROM endpoints
    JOIN accounts ON accounts.id = endpoints.account_id
    LEFT JOIN lanes ON lanes.endpoint = endpoints.number AND lanes.accepts
    WHERE endpoints.account_id IN :account_ids AND endpoints.deleted_at IS NULL
    ORDER BY endpoints.id
    FOR KEY SHARE OF endpoints, accounts
    """
)
_ITS = "WHERE account_id = :account AND webhook_id = :webhook"
_DROP_SECRET = Sql(f"DELETE FROM signing_secrets {_ITS} AND version = :version")
_DELETE = (
    Sql(
        """
        UPDATE endpoints SET deleted_at = :now, enabled = false, url = ''
        WHERE account_id = :account AND id = :webhook
        """
    ),
    Sql(f"DELETE FROM signing_secrets {_ITS}"),
    Sql(f"DELETE FROM bulk_retries {_ITS}"),
    *alerts.CLEAR_ENDPOINT,
)
_OF_ENDPOINT = "account = :account AND endpoint = :endpoint"
# A single statement: between two, a delivery could change from waiting to in flight.
_UNQUEUE = Sql(
    f"""
    DELETE FROM queue
    WHERE ({WAITING} AND {_OF_ENDPOINT}) OR ({IN_FLIGHT} AND {_OF_ENDPOINT})
    RETURNING id
    """
)
_DELETED = Sql(
    """
    SELECT accounts.number AS account, endpoints.number
    FROM endpoints JOIN accounts ON accounts.id = endpoints.account_id
    WHERE endpoints.deleted_at IS NOT NULL
    LIMIT 1 FOR UPDATE OF endpoints SKIP LOCKED
    """
)
_SOME_ENDED = Sql(f"SELECT id FROM deliveries WHERE {_OF_ENDPOINT} LIMIT :most")
_CLEAR_ATTEMPTS = Sql("DELETE FROM attempts WHERE account = :account AND delivery_id IN :ids")
_CLEAR_DELIVERIES = Sql("DELETE FROM deliveries WHERE account = :account AND id IN :ids")
_TARGETS = Sql(
    """
    SELECT
        endpoints.number, endpoints.account_id, endpoints.id, endpoints.url,
        secrets.version, secrets.sealed, secrets.hint, secrets.created_at, secrets.expires_at
    FROM endpoints
    LEFT JOIN signing_secrets AS secrets
        ON secrets.account_id = endpoints.account_id AND secrets.webhook_id = endpoints.id
    WHERE endpoints.number IN :lanes AND endpoints.deleted_at IS NULL
    ORDER BY secrets.version DESC
    """
)
_DELETE_ROW = Sql("DELETE FROM endpoints WHERE number = :endpoint")


class EndpointRecords(Records):
    async def add(self, endpoint: Endpoint, secret: StoredSecret) -> None:
        await self._session.insert(
            "endpoints",
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
        rows = await self._session.offloaded.fetch(_PAGE, account=account_id, **paging.bounds(page))
        return [endpoint_of(row) for row in rows]

    async def save(self, endpoint: Endpoint) -> None:
        key = {"account_id": endpoint.account_id, "id": endpoint.id}
        await self._session.update("endpoints", tuple(key), [key | _mutable(endpoint)])

    async def delete(self, account_id: UUID, webhook_id: UUID, now: datetime) -> None:
        for statement in _DELETE:
            await self._session.execute(statement, account=account_id, webhook=webhook_id, now=now)
        numbers = await numbers_of(self._session, account_id)
        key = {"account": numbers.account, "endpoint": numbers.endpoint(webhook_id)}
        ids = [each for (each,) in await self._session.offloaded.fetch(_UNQUEUE, **key)]
        for place in range(0, len(ids), HISTORY_CLEARED_AT_ONCE):
            some = ids[place : place + HISTORY_CLEARED_AT_ONCE]
            await self._session.offloaded.execute(_CLEAR_ATTEMPTS, **key, ids=some)
        await self._purge(**key, rows=HISTORY_CLEARED_AT_ONCE)

    async def purge_deleted(self, rows: int) -> bool:
        deleted = await self._session.fetch(_DELETED)
        for account, endpoint in deleted:
            await self._purge(account, endpoint, rows)
        return bool(deleted)

    async def subscribers(self, account_ids: Collection[UUID]) -> dict[UUID, list[Subscriber]]:
        found: dict[UUID, list[Subscriber]] = {}
        rows = await self._session.fetch(_SUBSCRIBERS, account_ids=list(account_ids))
        numbers = self._session.numbers
        for account_id, webhook_id, events, *facts in rows:
            enabled, is_open, endpoint, account, state, worker = facts
            numbers.accounts[account_id] = account
            numbers.states[account_id] = state
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
        await self._session.execute(
            _PUT_SECRET, account=account_id, webhook=webhook_id, **asdict(secret)
        )

    async def drop_secret(self, account_id: UUID, webhook_id: UUID, version: int) -> None:
        await self._session.execute(
            _DROP_SECRET, account=account_id, webhook=webhook_id, version=version
        )

    async def _one(self, statement: Sql, account_id: UUID, webhook_id: UUID) -> Endpoint | None:
        rows = await self._session.fetch(statement, account=account_id, webhook=webhook_id)
        return endpoint_of(rows[0]) if rows else None

    async def _purge(self, account: int, endpoint: int, rows: int) -> None:
        """Deletes some of its history, and the endpoint's own row once no history is left."""
        session, key = self._session.offloaded, {"account": account, "endpoint": endpoint}
        ids = [each for (each,) in await session.fetch(_SOME_ENDED, **key, most=rows)]
        for clear in (_CLEAR_ATTEMPTS, _CLEAR_DELIVERIES):
            if ids:
                await session.execute(clear, account=account, ids=ids)
        if len(ids) < rows:
            await session.execute(counts.CLEAR_ENDPOINT, **key)
            await self._session.execute(_DELETE_ROW, endpoint=endpoint)


def _why_stopped(is_open: bool) -> CancelReason:
    """Closed access takes precedence over a disabled endpoint."""
    return CancelReason.ENDPOINT_DISABLED if is_open else CancelReason.ACCESS_CLOSED


def _mutable(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "url": endpoint.url,
        "events": " ".join(endpoint.events),
        "description": endpoint.description,
        "enabled": endpoint.enabled,
        "updated_at": endpoint.updated_at,
        "last_delivered_at": endpoint.last_delivered_at,
        "failing_since": endpoint.failing_since,
        "troubled_since": endpoint.troubled_since,
        "last_failed_at": endpoint.last_failed_at,
    }


def endpoint_of(row: Sequence[Any]) -> Endpoint:
    account_id, webhook_id, url, events, *others = row
    return Endpoint(account_id, webhook_id, url, tuple(events.split()), *others)


async def load_targets(
    session: StoreSession, lanes: Collection[Lane], now: datetime
) -> dict[Lane, Target]:
    """URL and live secrets by lane, without deleted endpoints."""
    found: dict[Lane, tuple[UUID, UUID, str]] = {}
    secrets: dict[Lane, list[StoredSecret]] = defaultdict(list)
    for lane, account_id, webhook_id, url, version, *facts in await session.fetch(
        _TARGETS, lanes=lanes
    ):
        found[lane] = account_id, webhook_id, url
        if version is not None and (secret := StoredSecret(version, *facts)).is_live(now):
            secrets[lane].append(secret)
    return {lane: Target(*facts, tuple(secrets[lane])) for lane, facts in found.items()}
