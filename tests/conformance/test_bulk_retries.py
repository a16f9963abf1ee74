"""Bulk retries, and the deliveries that they look at."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cuepost.domain.access import AccountState
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import FINAL, CancelReason, Delivery, DeliveryStatus
from tests.support.records import Records
from tests.support.store_rows import AnyStore, add_deliveries, end

DAY = timedelta(days=1)


async def add(store: AnyStore, *jobs: BulkRetry) -> None:
    async with store.transaction() as transaction:
        for job in jobs:
            await transaction.bulk_retries.add(job)


async def found(store: AnyStore, job: BulkRetry) -> BulkRetry | None:
    async with store.transaction() as transaction:
        read = await transaction.bulk_retries.get(job.account_id, job.webhook_id, job.id)
        assert await transaction.bulk_retries.lock(job.account_id, job.id) == read
        return read


async def test_a_job_comes_back_as_it_was_added(store: AnyStore, records: Records) -> None:
    fresh = records.bulk_retry(records.id(), records.id(), statuses=FINAL)
    ended = [
        records.bulk_retry(
            records.id(),
            records.id(),
            state=state,
            statuses=(DeliveryStatus.DELIVERED,),
            retried=1,
            skipped=2,
            position=records.id(),
            finished_at=records.clock.now() + timedelta(milliseconds=1),
            include_delivered=True,
        )
        for state in (BulkRetryState.FINISHED, BulkRetryState.CANCELLED)
    ]
    await add(store, fresh, *ended)
    assert [await found(store, job) for job in (fresh, *ended)] == [fresh, *ended]


async def test_a_job_is_found_at_its_own_endpoint_alone(store: AnyStore, records: Records) -> None:
    job = records.bulk_retry(records.id(), records.id())
    await add(store, job)
    async with store.snapshot() as transaction:
        jobs = transaction.bulk_retries
        assert await jobs.get(job.account_id, records.id(), job.id) is None
        assert await jobs.get(job.account_id, job.webhook_id, records.id()) is None


async def test_progress_is_saved_and_ended_jobs_run_no_more(
    store: AnyStore, records: Records
) -> None:
    first, second, third = (records.bulk_retry(records.id(), records.id()) for _ in range(3))
    await add(store, first, second, third)
    moved = replace(first, retried=2, skipped=1, position=records.id())
    ended = replace(second, state=BulkRetryState.FINISHED, finished_at=records.clock.now())
    async with store.transaction() as transaction:
        await transaction.bulk_retries.save(moved)
        await transaction.bulk_retries.save(ended)

    assert [await found(store, job) for job in (first, second, third)] == [moved, ended, third]
    async with store.snapshot() as transaction:
        running = await transaction.bulk_retries.running(10)
        assert sorted(running, key=lambda job: job.id) == [moved, third]
        assert len(await transaction.bulk_retries.running(1)) == 1


async def candidates(store: AnyStore, records: Records, job: BulkRetry) -> list[Delivery]:
    """Two of each final status within the job's time, in a mixed order."""
    made = [
        records.delivery(
            job.account_id,
            webhook_id=job.webhook_id,
            status=status,
            reason=CancelReason.ENDPOINT_DISABLED if status == "cancelled" else None,
        )
        for status in (*FINAL, *reversed(FINAL))
    ]
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *made)
    return made


async def test_candidates_are_ended_deliveries_of_the_wanted_statuses_oldest_first(
    store: AnyStore, records: Records
) -> None:
    job = records.bulk_retry(records.id(), records.id())
    made = await candidates(store, records, job)
    async with store.transaction() as transaction:
        pending = records.delivery(job.account_id, webhook_id=job.webhook_id)
        elsewhere = records.delivery(job.account_id, status=DeliveryStatus.FAILED)
        await add_deliveries(transaction, pending, elsewhere)

    wanted = [each for each in made if each.status in job.statuses]
    async with store.snapshot() as transaction:
        jobs = transaction.bulk_retries
        assert await jobs.count_candidates(job) == 4
        assert await jobs.next_candidates(job, 10) == wanted
        assert await jobs.next_candidates(job, 3) == wanted[:3]
        behind = replace(job, position=wanted[1].id)
        assert await jobs.count_candidates(behind) == 2
        assert await jobs.next_candidates(behind, 10) == wanted[2:]
        everything = replace(job, statuses=FINAL)
        assert await jobs.next_candidates(everything, 10) == made


async def test_candidates_lie_between_since_and_until(store: AnyStore, records: Records) -> None:
    now = records.clock.now()
    job = records.bulk_retry(records.id(), records.id())
    made = []
    for _ in range(3):
        made.append(records.delivery(job.account_id, webhook_id=job.webhook_id, status=FINAL[1]))
        records.clock.advance(0.001)
    async with store.transaction() as transaction:
        await add_deliveries(transaction, *made)

    millisecond = timedelta(milliseconds=1)
    chosen = replace(job, since=now + millisecond, until=now + 2 * millisecond)
    async with store.snapshot() as transaction:
        assert await transaction.bulk_retries.next_candidates(chosen, 10) == [made[1]]
        assert await transaction.bulk_retries.count_candidates(chosen) == 1


async def test_failed_candidates_were_never_delivered_unless_asked(
    store: AnyStore, records: Records
) -> None:
    job = records.bulk_retry(records.id(), records.id(), until=records.clock.now() + DAY)
    made = await candidates(store, records, job)
    again = next(each for each in made if each.status is DeliveryStatus.DELIVERED)
    async with store.transaction() as transaction:
        await transaction.deliveries.send_again(job.account_id, [again.id], records.clock.now())
        await end(transaction, again.id, DeliveryStatus.FAILED, records.clock.now())

    only_failed = replace(job, statuses=(DeliveryStatus.FAILED,))
    failed = [each.id for each in made if each.status is DeliveryStatus.FAILED]
    for include, expected in ((False, failed), (True, sorted([again.id, *failed]))):
        chosen = replace(only_failed, include_delivered=include)
        async with store.snapshot() as transaction:
            found = await transaction.bulk_retries.next_candidates(chosen, 10)
            assert [each.id for each in found] == expected
            assert await transaction.bulk_retries.count_candidates(chosen) == len(expected)


@pytest.mark.parametrize("state", [each for each in AccountState if each is not AccountState.LIVE])
async def test_jobs_of_an_account_that_is_moved_keep_no_others_out(
    store: AnyStore, records: Records, state: AccountState
) -> None:
    moved, live = records.account(), records.account()
    jobs = [records.bulk_retry(each.id, records.id()) for each in (moved, moved, live)]
    async with store.transaction() as transaction:
        for account in (moved, live):
            await transaction.accounts.add(account)
        await transaction.moves.set_state(moved.id, state)
    await add(store, *jobs)
    async with store.snapshot() as transaction:
        assert await transaction.bulk_retries.running(1) == [jobs[2]]
