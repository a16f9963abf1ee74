"""The state of the whole service: each statement reads a limited number of index entries."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.storage import schema
from cuepost.adapters.storage.codes import STATUS
from cuepost.adapters.storage.columns import IN_FLIGHT, WAITING
from cuepost.adapters.storage.records.access import ACCOUNT_COLUMNS, account_of
from cuepost.adapters.storage.records.counts import COUNTED, TABLE, counts_of
from cuepost.adapters.storage.records.endpoints import endpoint_of
from cuepost.adapters.storage.session import StoreSession
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.access import Account
from cuepost.domain.alert import AlertKind
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.delivery_counts import FINE_MINUTES, HOUR_MINUTES, Interval
from cuepost.domain.endpoint import Endpoint
from cuepost.ports.service_state import (
    COUNTED_AT_MOST,
    CountedIntervals,
    EndpointLine,
    OldestDue,
    StoreState,
    WorkerState,
)

# One row per endpoint and interval; they are read from the newest on.
COUNTS_READ = 20_000
_ENDPOINT = tuple(field.name for field in fields(Endpoint))
_COUNTS = Sql(
    f"""
    SELECT since, count(*) AS count, {", ".join(f"sum({name}) AS {name}" for name in COUNTED)}
    FROM (
        SELECT since, {", ".join(COUNTED)} FROM {TABLE}
        WHERE minutes = :minutes AND since >= :since ORDER BY since DESC LIMIT :most
    ) AS newest
    GROUP BY since ORDER BY since
    """
)
_DUE = Sql(
    f"""
    SELECT count(*) AS count FROM (
        SELECT due_at FROM queue WHERE {WAITING} AND due_at <= :now ORDER BY due_at LIMIT :most
    ) AS due
    """
)
_OLDEST_DUE = Sql(
    f"""
    SELECT accounts.id, accounts.name, endpoints.url, earliest.due_at
    FROM (
        SELECT endpoint, due_at FROM queue WHERE {WAITING} ORDER BY due_at LIMIT 1
    ) AS earliest
    JOIN endpoints ON endpoints.number = earliest.endpoint
    JOIN accounts ON accounts.id = endpoints.account_id
    """
)
_WORKERS = Sql(
    f"""
    SELECT workers.id, workers.alive_until, workers.leaving,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM lanes WHERE lanes.worker_id = workers.id LIMIT {COUNTED_AT_MOST}
            ) AS held
        ) AS count,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM queue WHERE {IN_FLIGHT} AND queue.worker = workers.id
                LIMIT {COUNTED_AT_MOST}
            ) AS leased
        ) AS total
    FROM workers ORDER BY workers.id LIMIT :most
    """
)
_REVISION = f"(SELECT version_num FROM {schema.VERSION}) AS name"
_STORE = Sql(
    sqlite=f"""
    SELECT page_count * page_size AS size_bytes, {_REVISION}
    FROM pragma_page_count(), pragma_page_size()
    """,
    postgresql=f"SELECT pg_database_size(current_database()) AS size_bytes, {_REVISION}",
)
_CLOSED = Sql(
    f"""
    SELECT {ACCOUNT_COLUMNS} FROM accounts WHERE NOT webhooks_enabled ORDER BY id DESC LIMIT :most
    """
)


def _sum(column: str, minutes: int, since: str) -> str:
    return f"""
    (
        SELECT coalesce(sum({TABLE}.{column}), 0) FROM {TABLE}
        WHERE {TABLE}.account = accounts.number AND {TABLE}.endpoint = endpoints.number
            AND {TABLE}.minutes = {minutes} AND {TABLE}.since >= :{since}
    )
    """


_LINES = f"""
    SELECT {", ".join(f"endpoints.{name}" for name in _ENDPOINT)}, accounts.name,
        (
            SELECT count(*) FROM (
                SELECT 1 FROM queue
                WHERE {WAITING} AND queue.account = accounts.number
                    AND queue.endpoint = endpoints.number
                    AND queue.status = {STATUS[DeliveryStatus.RETRYING]}
                LIMIT 1
            ) AS waiting
        ) AS retried,
        {_sum("failed", FINE_MINUTES, "recent")} AS count,
        {_sum("delivered", HOUR_MINUTES, "day")} AS delivered,
        {_sum("failed", HOUR_MINUTES, "day")} AS failed
    """
_FAILING = Sql(
    f"""
    {_LINES}
    FROM (
        SELECT account_id, webhook_id FROM alerts
        WHERE alerts.finished_at IS NULL AND alerts.kind = '{AlertKind.FAILING}' LIMIT :most
    ) AS opened
    JOIN endpoints
        ON endpoints.account_id = opened.account_id AND endpoints.id = opened.webhook_id
    JOIN accounts ON accounts.id = endpoints.account_id
    WHERE endpoints.deleted_at IS NULL
    """
)
_OF_ACCOUNTS = Sql(
    f"""
    {_LINES}
    FROM endpoints JOIN accounts ON accounts.id = endpoints.account_id
    WHERE endpoints.account_id IN :account_ids AND endpoints.deleted_at IS NULL
    ORDER BY endpoints.id LIMIT :most
    """
)


class ServiceStateRecords:
    def __init__(self, session: StoreSession) -> None:
        self._dialect = session.dialect
        self._session = session.offloaded

    async def counts(self, minutes: int, since: datetime) -> CountedIntervals:
        rows = await self._session.fetch(_COUNTS, minutes=minutes, since=since, most=COUNTS_READ)
        intervals = [Interval(begin, counts_of(counted)) for begin, _, *counted in rows]
        return CountedIntervals(intervals, sum(count for _, count, *_ in rows) == COUNTS_READ)

    async def due(self, now: datetime) -> int:
        [(count,)] = await self._session.fetch(_DUE, now=now, most=COUNTED_AT_MOST)
        return int(count)

    async def oldest_due(self) -> OldestDue | None:
        rows = await self._session.fetch(_OLDEST_DUE)
        return OldestDue(*rows[0]) if rows else None

    async def workers(self, limit: int) -> list[WorkerState]:
        return [WorkerState(*row) for row in await self._session.fetch(_WORKERS, most=limit)]

    async def store(self) -> StoreState:
        [(size, revision)] = await self._session.fetch(_STORE)
        return StoreState(self._dialect, int(size), revision, schema.revisions()[-1])

    async def closed_accounts(self, limit: int) -> list[Account]:
        return [account_of(row) for row in await self._session.fetch(_CLOSED, most=limit)]

    async def failing(self, limit: int, recent: datetime, day: datetime) -> list[EndpointLine]:
        rows = await self._session.fetch(_FAILING, most=limit, recent=recent, day=day)
        return [_line(row) for row in rows]

    async def endpoints_of(
        self, account_ids: Sequence[UUID], limit: int, recent: datetime, day: datetime
    ) -> list[EndpointLine]:
        rows = await self._session.fetch(
            _OF_ACCOUNTS, account_ids=list(account_ids), most=limit, recent=recent, day=day
        )
        return [_line(row) for row in rows]


def _line(row: Sequence[Any]) -> EndpointLine:
    endpoint, (name, *numbers) = row[: len(_ENDPOINT)], row[len(_ENDPOINT) :]
    return EndpointLine(endpoint_of(endpoint), name, *map(int, numbers))
