"""Bulk retries and the deliveries that they have not processed yet."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.records import delivery_rows as rows
from cuepost.adapters.storage.records.paging import Chosen
from cuepost.adapters.storage.session import AccountNumbers, Records, numbers_of
from cuepost.adapters.storage.sql import Sql, quoted
from cuepost.domain.access import AccountState
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import Delivery, DeliveryStatus
from cuepost.domain.instants import lowest_at

_FROM_JOBS = """
    SELECT account_id, id, webhook_id, since, until, statuses, state, total, retried, skipped,
        "position" AS bulk_position, created_at, finished_at, include_delivered
    FROM bulk_retries
    """
_ONE = Sql(
    f"{_FROM_JOBS} WHERE account_id = :account_id AND id = :job_id AND webhook_id = :webhook_id"
)
_LOCKED = Sql(f"{_FROM_JOBS} WHERE account_id = :account_id AND id = :job_id FOR UPDATE")
# A literal, because the planner has to see that the partial index applies. Jobs of an account that
# is being moved wait, and must not keep the others out.
_RUNNING = Sql(
    f"""
    {_FROM_JOBS} WHERE state = 'running' AND NOT EXISTS (
        SELECT * FROM accounts
        WHERE accounts.id = bulk_retries.account_id AND accounts.state <> '{AccountState.LIVE}'
    )
    LIMIT :most
    """
)
_ENDED = f"SELECT {quoted(rows.Ended._fields)} FROM deliveries"


class BulkRetryRecords(Records):
    async def add(self, job: BulkRetry) -> None:
        await self._session.insert("bulk_retries", [_row_of(job)])

    async def get(self, account_id: UUID, webhook_id: UUID, job_id: UUID) -> BulkRetry | None:
        return await self._one(_ONE, account_id=account_id, job_id=job_id, webhook_id=webhook_id)

    async def lock(self, account_id: UUID, job_id: UUID) -> BulkRetry | None:
        return await self._one(_LOCKED, account_id=account_id, job_id=job_id)

    async def running(self, limit: int) -> list[BulkRetry]:
        return [_job(row) for row in await self._session.fetch(_RUNNING, most=limit)]

    async def save(self, job: BulkRetry) -> None:
        await self._session.update("bulk_retries", ("account_id", "id"), [_row_of(job)])

    async def count_candidates(self, job: BulkRetry) -> int:
        numbers = await numbers_of(self._session, job.account_id)
        total = 0
        for status in job.statuses:
            chosen = _candidates(job, numbers, status)
            counting = chosen.of("SELECT count(*) AS count FROM deliveries")
            [(count,)] = await self._session.offloaded.fetch(counting, **chosen.values)
            total += count
        return total

    async def next_candidates(self, job: BulkRetry, limit: int) -> list[Delivery]:
        # The rows of each status are in the right order, so only the first ones are read.
        numbers = await numbers_of(self._session, job.account_id)
        found: list[rows.Ended] = []
        for status in job.statuses:
            chosen = _candidates(job, numbers, status)
            oldest_first = chosen.of(_ENDED, "ORDER BY id LIMIT :most")
            ended = await self._session.fetch(oldest_first, most=limit, **chosen.values)
            found += map(rows.Ended._make, ended)
        oldest = sorted(found, key=lambda row: row.id)[:limit]
        return [row.delivery(job.account_id, numbers.webhook_of) for row in oldest]

    async def _one(self, statement: Sql, **values: Any) -> BulkRetry | None:
        rows = await self._session.fetch(statement, **values)
        return _job(rows[0]) if rows else None


def _candidates(job: BulkRetry, numbers: AccountNumbers, status: DeliveryStatus) -> Chosen:
    chosen = Chosen(
        "account = :account",
        "endpoint = :endpoint",
        rows.ended_condition(status, include_delivered=job.include_delivered),
        account=numbers.account,
        endpoint=numbers.endpoint(job.webhook_id),
    )
    begin = lowest_at(job.since)
    if job.position is not None:
        begin = max(begin, UUID(int=job.position.int + 1))
    chosen.between("id", begin, lowest_at(job.until))
    return chosen


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


def _job(row: Sequence[Any]) -> BulkRetry:
    account_id, identifier, webhook_id, since, until, statuses, state, *rest = row
    total, retried, skipped, position, created_at, finished_at, include_delivered = rest
    return BulkRetry(
        account_id=account_id,
        id=identifier,
        webhook_id=webhook_id,
        since=since,
        until=until,
        statuses=tuple(DeliveryStatus(name) for name in statuses.split()),
        state=BulkRetryState(state),
        count=total,
        retried=retried,
        skipped=skipped,
        position=position,
        created_at=created_at,
        finished_at=finished_at,
        include_delivered=include_delivered,
    )
