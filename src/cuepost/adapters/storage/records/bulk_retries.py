"""Bulk retries and the deliveries that they have still to look at."""

from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.records.delivery_pages import ended_as
from cuepost.adapters.storage.records.numbers import AccountNumbers, numbers_of
from cuepost.adapters.storage.records.paging import between
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import bulk_retries, deliveries
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.ids import lowest_at

_RUNNING = sa.select(bulk_retries).where(bulk_retries.c.state == sa.literal_column("'running'"))


class BulkRetryRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, job: BulkRetry) -> None:
        await self._session.insert(bulk_retries, [_row_of(job)])

    async def get(self, account_id: UUID, webhook_id: UUID, job_id: UUID) -> BulkRetry | None:
        return await self._one(
            sa.select(bulk_retries).where(
                bulk_retries.c.account_id == account_id,
                bulk_retries.c.id == job_id,
                bulk_retries.c.webhook_id == webhook_id,
            )
        )

    async def lock(self, account_id: UUID, job_id: UUID) -> BulkRetry | None:
        return await self._one(
            sa.select(bulk_retries)
            .where(bulk_retries.c.account_id == account_id, bulk_retries.c.id == job_id)
            .with_for_update()
        )

    async def running(self, limit: int) -> list[BulkRetry]:
        rows = await self._session.all(_RUNNING.limit(limit))
        return [_job(row) for row in rows]

    async def save(self, job: BulkRetry) -> None:
        await self._session.update(bulk_retries, ("account_id", "id"), [_row_of(job)])

    async def count_candidates(self, job: BulkRetry) -> int:
        numbers = await numbers_of(self._session, job.account_id)
        counts = [_candidates(job, numbers, status, sa.func.count()) for status in job.statuses]
        found = [await self._session.unhurried.all(count) for count in counts]
        return sum(int(row[0][0]) for row in found)

    async def next_candidates(self, job: BulkRetry, limit: int) -> list[Delivery]:
        # Each status has its rows in the right order already, so only the first ones are read.
        numbers = await numbers_of(self._session, job.account_id)
        found = [
            rows.Ended._make(row)
            for status in job.statuses
            for row in await self._session.all(
                _candidates(job, numbers, status, *rows.ENDED)
                .order_by(deliveries.c.id)
                .limit(limit)
            )
        ]
        oldest = sorted(found, key=lambda row: row.id)[:limit]
        return [row.delivery(job.account_id, numbers.webhook_of) for row in oldest]

    async def _one(self, statement: sa.Select[Any]) -> BulkRetry | None:
        row = await first(self._session, statement)
        return _job(row) if row else None


def _candidates(
    job: BulkRetry, numbers: AccountNumbers, status: DeliveryStatus, *columns: Any
) -> sa.Select[Any]:
    statement = sa.select(*columns).where(
        deliveries.c.account == numbers.account,
        deliveries.c.endpoint == numbers.endpoint(job.webhook_id),
        ended_as(status, include_delivered=job.include_delivered),
    )
    begin = lowest_at(job.since)
    if job.position is not None:
        begin = max(begin, UUID(int=job.position.int + 1))
    return between(statement, deliveries.c.id, begin, lowest_at(job.until))


def _row_of(job: BulkRetry) -> dict[str, Any]:
    return {
        "account_id": job.account_id,
        "id": job.id,
        "webhook_id": job.webhook_id,
        "since": job.since,
        "until": job.until,
        "statuses": " ".join(job.statuses),
        "state": job.state,
        "total": job.count,
        "retried": job.retried,
        "skipped": job.skipped,
        "position": job.position,
        "created_at": job.created_at,
        "finished_at": job.finished_at,
        "include_delivered": job.include_delivered,
    }


def _job(row: sa.Row[Any]) -> BulkRetry:
    return BulkRetry(
        account_id=row.account_id,
        id=row.id,
        webhook_id=row.webhook_id,
        since=row.since,
        until=row.until,
        statuses=tuple(DeliveryStatus(name) for name in row.statuses.split()),
        state=BulkRetryState(row.state),
        count=row.total,
        retried=row.retried,
        skipped=row.skipped,
        position=row.position,
        created_at=row.created_at,
        finished_at=row.finished_at,
        include_delivered=row.include_delivered,
    )
