"""Maintenance jobs run by themselves, on both stores, in as many processes as there are."""

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.account_reference import search_key
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.engine import maintenance
from cuepost.engine.maintenance import MaintenanceJob, MaintenanceRunner, maintenance_jobs
from cuepost.ports.media import NO_MEDIA
from cuepost.ports.records import AccountSearch, SearchedBy
from cuepost.ports.store import StoreUnavailable, Transaction
from cuepost.testing import VirtualClock
from tests.application.harness import EVERYTHING, OPERATOR, Harness
from tests.engine.maintenance_harness import (
    PATIENCE_SECONDS,
    MaintenanceHarness,
    running_maintenance,
)
from tests.support.records import Records

SECOND, MINUTE, HOUR, DAY = (
    timedelta(seconds=1),
    timedelta(minutes=1),
    timedelta(hours=1),
    timedelta(days=1),
)
RETENTION = 30 * DAY


def jobs_of(harness: Harness) -> tuple[MaintenanceJob, ...]:
    return maintenance_jobs(harness.store, harness.service, harness.clock, RETENTION)


@pytest.fixture
async def runner(harness: Harness) -> AsyncIterator[MaintenanceHarness]:
    async with running_maintenance(harness.clock, jobs_of(harness)) as runner:
        yield runner


async def failed_deliveries(harness: Harness, count: int) -> list[Delivery]:
    made = [await harness.complete() for _ in range(count)]
    for delivery in made:
        await harness.end(delivery, DeliveryStatus.FAILED)
    return made


async def started_bulk_retry(harness: Harness, deliveries: list[Delivery]) -> BulkRetry:
    return await harness.do(
        harness.service.redeliver.start_bulk,
        harness.owner,
        deliveries[0].webhook_id,
        since=harness.clock.now() - HOUR,
        until=harness.clock.now() + HOUR,
        statuses=[],
        dry_run=False,
    )


async def progress(harness: Harness, job: BulkRetry) -> BulkRetry:
    return await harness.see(harness.service.redeliver.bulk, harness.owner, job.webhook_id, job.id)


async def test_a_bulk_retry_is_done_within_a_second_however_many_steps_it_takes(
    harness: Harness, runner: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "BULK_RETRY_DELIVERIES", 2)
    await harness.endpoint()
    failed = await failed_deliveries(harness, 5)
    job = await started_bulk_retry(harness, failed)

    await runner.later(SECOND)

    assert await progress(harness, job) == replace(
        job,
        state=BulkRetryState.FINISHED,
        retried=5,
        position=failed[-1].id,
        finished_at=harness.clock.now(),
    )
    assert await harness.queued() == {delivery.id for delivery in failed}


async def test_two_housekeepers_send_each_delivery_again_once(
    harness: Harness, runner: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "BULK_RETRY_DELIVERIES", 3)
    await harness.endpoint()

    async with running_maintenance(harness.clock, jobs_of(harness)) as other:
        jobs = [await started_bulk_retry(harness, await failed_deliveries(harness, 10))]
        jobs.append(await started_bulk_retry(harness, await failed_deliveries(harness, 10)))
        await runner.later(SECOND)
        await other.rest()

    ended = [await progress(harness, job) for job in jobs]
    assert {job.state for job in ended} == {BulkRetryState.FINISHED}
    assert sum(job.retried for job in ended) == 20
    assert {delivery.budget for delivery in await harness.deliveries()} == {2}


async def test_what_waits_for_a_project_stops_within_a_second_of_its_access(
    harness: Harness, runner: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "EXPIRED_PROJECTS", 2)
    await harness.endpoint()
    for _ in range(5):
        await harness.complete(await harness.project(access_expires_at=harness.clock.now() + HOUR))

    await runner.later(HOUR - SECOND)
    assert len(await harness.queued()) == 5
    await runner.later(SECOND)
    assert {(each.status, each.reason) for each in await harness.deliveries()} == {
        (DeliveryStatus.CANCELLED, CancelReason.PROJECT_ACCESS_EXPIRED)
    }


async def test_the_history_of_a_deleted_endpoint_is_cleared_away(
    harness: Harness, runner: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "PURGED_ROWS", 2)
    deleted = (await harness.endpoint()).view.endpoint
    for _ in range(5):
        await harness.complete()
    kept = (await harness.endpoint()).view.endpoint
    await harness.do(harness.service.webhooks.delete, harness.owner, deleted.id)
    stays = await harness.complete()

    await runner.later(MINUTE)

    stored = await harness.dump()
    assert [row.id for row in stored["queue"]] == [stays.id]
    assert stored["deliveries"] == []
    assert [row.id for row in stored["endpoints"]] == [kept.id]


async def test_a_listener_that_is_not_served_for_30_days_is_forgotten(
    harness: Harness, runner: MaintenanceHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "UNSERVED_LISTENERS_AT_ONCE", 2)
    listeners = harness.service.listeners
    for name in ("served", "one", "two", "three"):
        await harness.do(listeners.register, harness.owner, name, None)
    await runner.later(20 * DAY)
    served = await harness.do(listeners.register, harness.owner, "served", None)
    await runner.later(10 * DAY - HOUR)
    assert len(await harness.see(listeners.page, harness.owner, EVERYTHING)) == 4

    await runner.later(2 * HOUR)

    assert await harness.see(listeners.page, harness.owner, EVERYTHING) == [served]


async def test_idempotency_keys_are_forgotten_after_a_day(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    async def claim(key: str) -> None:
        owner, now = harness.account.id, harness.clock.now()
        await harness.do(lambda t: t.idempotency.claim(owner, owner, key, b"", now))

    await claim("old")
    await runner.later(MINUTE)
    await claim("young")

    await runner.later(DAY)

    assert [row.key for row in (await harness.dump())["idempotency_keys"]] == ["young"]


async def test_reports_are_forgotten_when_their_history_is(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    await harness.report(harness.milestone(await harness.project(), report_id="old"))
    await runner.later(MINUTE)
    await harness.report(harness.milestone(await harness.project(), report_id="young"))

    await runner.later(RETENTION)

    assert [row.report_id for row in (await harness.dump())["reports"]] == ["young"]


async def test_the_audit_trail_is_kept_for_400_days(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    old = (await harness.endpoint()).view.endpoint
    await runner.later(HOUR)
    young = (await harness.endpoint()).view.endpoint
    assert {entry.subject for entry in await harness.audit()} == {str(old.id), str(young.id)}

    await runner.later(400 * DAY)

    assert [entry.subject for entry in await harness.audit()] == [str(young.id)]


async def test_there_is_always_room_for_the_history_of_today(
    harness: Harness, runner: MaintenanceHarness
) -> None:
    await harness.endpoint()

    for _ in range(3):
        await runner.later(10 * DAY)
        await harness.complete()

    assert len(await harness.deliveries()) == 3


async def test_a_job_with_more_to_do_goes_on_at_once_and_then_waits_for_its_time() -> None:
    steps: list[str] = []
    answers = iter([True, True, False, False])

    async def step() -> bool:
        steps.append("step")
        return next(answers)

    async with running_maintenance(
        VirtualClock(), [MaintenanceJob("test", MINUTE, step)]
    ) as runner:
        assert len(steps) == 3
        await runner.later(MINUTE - SECOND)
        assert len(steps) == 3
        await runner.later(SECOND)
        assert len(steps) == 4


async def test_a_failing_job_is_logged_and_tried_again_while_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []

    async def failing() -> bool:
        done.append("failing")
        raise LookupError("not today")

    async def working() -> bool:
        done.append("working")
        return False

    jobs = [MaintenanceJob("fail", SECOND, failing), MaintenanceJob("work", SECOND, working)]
    async with running_maintenance(VirtualClock(), jobs) as runner:
        await runner.later(SECOND)

    assert sorted(done) == ["failing", "failing", "working", "working"]
    assert caplog.messages == ['event=maintenance_job_failed operation="fail"'] * 2
    assert all(record.exc_info for record in caplog.records)


async def test_a_store_that_is_away_is_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def step() -> bool:
        raise StoreUnavailable("the database is not available")

    async with running_maintenance(VirtualClock(), [MaintenanceJob("clean", SECOND, step)]):
        pass

    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == (
        'event=maintenance_job_failed operation="clean" '
        "sqlstate=- error=the database is not available"
    )
    assert record.exc_info is None


async def test_a_cancelled_runner_stops_in_the_middle_of_a_step() -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def step() -> bool:
        begun.set()
        return await never.wait()

    with anyio.fail_after(PATIENCE_SECONDS):
        async with asyncio.TaskGroup() as group:
            running = group.create_task(
                MaintenanceRunner(VirtualClock(), [MaintenanceJob("test", SECOND, step)]).run()
            )
            await begun.wait()
            running.cancel()

    assert running.cancelled()


async def test_an_account_that_was_given_up_is_erased_in_steps(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maintenance, "ERASED_ROWS", 1)
    stranger = await harness.new_owner()
    await harness.endpoint(caller=stranger)
    kept = await harness.see(lambda t: t.accounts.get(stranger.account))
    await harness.endpoint()
    for _ in range(3):
        await harness.complete()
    await harness.do(harness.service.accounts.erase, OPERATOR, harness.account.id)
    # A process that dies in the middle of it leaves the rest to the next one.
    await harness.service.maintenance.erasing.step(harness.account.id, 1)
    async with running_maintenance(harness.clock, jobs_of(harness)):
        assert await harness.see(lambda t: t.accounts.oldest(100)) == [kept]
        assert await harness.see(lambda t: t.accounts.erasing(1)) == []


async def test_an_account_whose_files_cannot_be_removed_keeps_no_other_waiting(
    harness: Harness,
) -> None:
    duties = harness.service.maintenance
    without_media = replace(duties, erasing=replace(duties.erasing, files=NO_MEDIA.files))
    service = replace(harness.service, maintenance=without_media)
    other = await harness.new_owner()
    project = await harness.project()
    artifact = Records().artifact()
    await harness.do(
        lambda t: t.projects.replace_artifacts({(project.account_id, project.id): [artifact]})
    )
    for account_id in (harness.account.id, other.account):
        await harness.do(harness.service.accounts.erase, OPERATOR, account_id)
    jobs = maintenance_jobs(harness.store, service, harness.clock, RETENTION)
    async with running_maintenance(harness.clock, jobs):
        assert await harness.see(lambda t: t.accounts.erasing(5)) == [harness.account.id]
    async with running_maintenance(harness.clock, jobs_of(harness)):
        assert await harness.see(lambda t: t.accounts.erasing(5)) == []


async def test_accounts_and_projects_of_an_older_version_can_be_found_by_name(
    harness: Harness,
) -> None:
    async def forget(transaction: Transaction) -> None:
        assert isinstance(transaction, RecordsTransaction)
        for table in ("accounts", "projects"):
            await transaction.session.execute(Sql(f"UPDATE {table} SET search_name = NULL"))

    project = await harness.project(name="Ärger im Paradies")
    await harness.do(forget)
    assert await harness.see(lambda t: t.projects.search(harness.account.id, "ärger", 5)) == []
    async with running_maintenance(harness.clock, jobs_of(harness)):
        search = AccountSearch(SearchedBy.NAME, search_key(harness.account.name), 5)
        found = await harness.see(lambda t: t.accounts.search(search))
        assert found == [harness.account]
        named = await harness.see(lambda t: t.projects.search(harness.account.id, "ärger", 5))
        assert named == [project]
        assert not await harness.see(lambda t: t.projects.lacks_search_names())
