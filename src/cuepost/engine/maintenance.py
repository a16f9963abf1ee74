"""The maintenance jobs; several processes may run them at the same time."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from uuid import UUID

from cuepost.application.service import Maintenance, Service
from cuepost.domain import audit
from cuepost.domain.bulk_retry import BulkRetry
from cuepost.domain.errors import MediaUnavailable, NotFound
from cuepost.domain.listener import UNSERVED_LIFE
from cuepost.engine.retention import Expiry
from cuepost.log_lines import log_store_error
from cuepost.ports.mail import Mailer
from cuepost.ports.retention import Expiring
from cuepost.ports.store import Contention, Store, StoreUnavailable, Transaction
from cuepost.ports.system import Clock
from cuepost.tuning import (
    BULK_RETRY_DELIVERIES,
    BULK_RETRY_JOBS,
    ERASED_ACCOUNTS,
    ERASED_ROWS,
    EXPIRED_PROJECTS,
    MAINTENANCE_JOBS_AT_ONCE,
    NAMED_AT_ONCE,
    PURGED_ROWS,
    UNSERVED_LISTENERS_AT_ONCE,
)

IDEMPOTENCY_LIFE = timedelta(hours=24)
# Those of an hour are shown; for the rest of the history there are counts of hours.
SHORT_COUNTS_LIFE = timedelta(hours=2)

Step = Callable[[Transaction], Awaitable[bool]]

logger = logging.getLogger("cuepost.maintenance")


@dataclass(frozen=True, slots=True)
class MaintenanceJob:
    """`step` does a small part of the job and returns True if more can be done at once."""

    name: str
    every: timedelta
    step: Callable[[], Awaitable[bool]]


@dataclass(frozen=True, slots=True)
class MaintenanceRunner:
    """All jobs are due when a process starts; few run at a time, each with one connection."""

    clock: Clock
    jobs: Sequence[MaintenanceJob]
    _slots: asyncio.Semaphore = field(
        default_factory=lambda: asyncio.Semaphore(MAINTENANCE_JOBS_AT_ONCE)
    )

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for job in self.jobs:
                group.create_task(self._repeat(job), name=f"job: {job.name}")

    async def _repeat(self, job: MaintenanceJob) -> None:
        while True:
            async with self._slots:
                has_more = await _try_step(job)
            if not has_more:
                await self.clock.wait(job.every.total_seconds())


async def _try_step(job: MaintenanceJob) -> bool:
    """A job that fails is tried again at its next regular time."""
    try:
        return await job.step()
    except (Contention, StoreUnavailable) as error:
        log_store_error(logger, "maintenance_job_failed", error, f'"{job.name}"')
    except Exception:
        logger.exception('event=maintenance_job_failed operation="%s"', job.name)
    return False


def maintenance_jobs(
    store: Store,
    service: Service,
    clock: Clock,
    retention: timedelta,
    mailer: Mailer | None = None,
) -> tuple[MaintenanceJob, ...]:
    """Without a mailer no e-mail is sent."""
    steps = JobSteps(store, service, clock)
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    return (
        MaintenanceJob("step bulk retries", timedelta(seconds=1), steps.step_bulk_retries),
        MaintenanceJob("stop expired projects", timedelta(seconds=1), steps.stop_expired_projects),
        MaintenanceJob("purge deleted endpoints", minute, steps.purge_deleted_endpoints),
        MaintenanceJob("erase accounts", timedelta(seconds=5), steps.erase_accounts),
        MaintenanceJob("name accounts for search", hour, steps.name_accounts_for_search),
        MaintenanceJob("name projects for search", hour, steps.name_projects_for_search),
        MaintenanceJob("prepare days", hour, steps.prepare_days),
        MaintenanceJob("forget unserved listeners", hour, steps.delete_unserved_listeners),
        *_alert_jobs(service.maintenance, mailer),
        *_retention_jobs(Expiry(store, clock), retention),
    )


def _alert_jobs(maintenance: Maintenance, mailer: Mailer | None) -> Iterator[MaintenanceJob]:
    often, alerts = timedelta(seconds=5), maintenance.alerts
    announce = partial(alerts.announce, by_email=mailer is not None)
    yield MaintenanceJob("end alerts", often, alerts.end_recovered)
    yield MaintenanceJob("watch backlogs", timedelta(minutes=1), alerts.watch_backlogs)
    yield MaintenanceJob("announce alerts", timedelta(seconds=1), announce)
    if mailer is not None:
        send_alerts = partial(maintenance.alert_mails.step, mailer)
        send_invitations = partial(maintenance.invitation_mails.step, mailer)
        yield MaintenanceJob("send alerts by e-mail", often, send_alerts)
        yield MaintenanceJob("send invitations by e-mail", often, send_invitations)


def _retention_jobs(expiry: Expiry, retention: timedelta) -> Iterator[MaintenanceJob]:
    minute, hour = timedelta(minutes=1), timedelta(hours=1)
    for what, life, every in (
        (Expiring.HISTORY, retention, 10 * minute),
        (Expiring.COUNTS, retention + hour, 10 * minute),
        (Expiring.SHORT_COUNTS, SHORT_COUNTS_LIFE, 10 * minute),
        (Expiring.ALERTS, retention, hour),
        (Expiring.BULK_RETRIES, retention, hour),
        (Expiring.REPORTS, retention, hour),
        (Expiring.AUDIT_TRAIL, timedelta(days=audit.RETENTION_DAYS), hour),
        (Expiring.IDEMPOTENCY_KEYS, IDEMPOTENCY_LIFE, 10 * minute),
        (Expiring.SECRETS, timedelta(0), 10 * minute),
        (Expiring.SECRET_REVEALS, timedelta(0), minute),
        (Expiring.SIGN_IN_LINKS, timedelta(0), hour),
        (Expiring.PORTAL_LINKS, timedelta(0), hour),
        (Expiring.INVITATIONS, timedelta(0), hour),
        (Expiring.INVITATION_MAILS, timedelta(0), hour),
        (Expiring.SESSIONS, timedelta(0), hour),
        (Expiring.INBOX_MESSAGES, retention, hour),
    ):
        yield MaintenanceJob(f"forget {what}", every, partial(expiry.step, what, life))
    yield MaintenanceJob("return free pages", 10 * minute, expiry.return_free_pages)


@dataclass(frozen=True, slots=True)
class JobSteps:
    store: Store
    service: Service
    clock: Clock

    async def prepare_days(self) -> bool:
        now = self.clock.now()
        if await self.service.perform.read(lambda snapshot: snapshot.retention.lacks_days(now)):
            await self.store.prepare_days(now)
        return False

    async def step_bulk_retries(self) -> bool:
        """One step of each job, so that a long one does not keep the others waiting."""
        jobs = await self.service.perform.read(
            lambda transaction: transaction.bulk_retries.running(BULK_RETRY_JOBS)
        )
        unfinished = [await self._step_bulk_retry(job) for job in jobs]
        return any(unfinished)

    async def _step_bulk_retry(self, job: BulkRetry) -> bool:
        return await self.service.perform.change(
            lambda transaction: self.service.redeliver.bulk_step(
                transaction, job.account_id, job.id, BULK_RETRY_DELIVERIES
            )
        )

    async def stop_expired_projects(self) -> bool:
        return await self.service.maintenance.expiry.step(EXPIRED_PROJECTS)

    async def purge_deleted_endpoints(self) -> bool:
        return await self._change_if(
            lambda snapshot: snapshot.retention.has_deleted_endpoints(),
            lambda transaction: transaction.endpoints.purge_deleted(PURGED_ROWS),
        )

    async def erase_accounts(self) -> bool:
        """One step of each account that an operator has given up."""
        accounts = await self.service.perform.read(
            lambda transaction: transaction.accounts.erasing(ERASED_ACCOUNTS)
        )
        unfinished = [await self._erase_some(each) for each in accounts]
        return any(unfinished)

    async def _erase_some(self, account_id: UUID) -> bool:
        try:
            return not await self.service.maintenance.erasing.step(account_id, ERASED_ROWS)
        except (NotFound, MediaUnavailable):
            # Another process has removed the rest; or the media store has logged what is wrong, and
            # the next round tries again.
            return False

    async def name_accounts_for_search(self) -> bool:
        return await self._change_if(
            lambda snapshot: snapshot.accounts.lacks_search_names(),
            lambda transaction: transaction.accounts.name_for_search(NAMED_AT_ONCE),
        )

    async def name_projects_for_search(self) -> bool:
        return await self._change_if(
            lambda snapshot: snapshot.projects.lacks_search_names(),
            lambda transaction: transaction.projects.name_for_search(NAMED_AT_ONCE),
        )

    async def delete_unserved_listeners(self) -> bool:
        before, most = self.clock.now() - UNSERVED_LIFE, UNSERVED_LISTENERS_AT_ONCE
        return await self._change_if(
            lambda snapshot: snapshot.listeners.any_unserved(before),
            lambda transaction: transaction.listeners.delete_unserved(before, most),
        )

    async def _change_if(self, is_needed: Step, change: Step) -> bool:
        """Checks before it opens a write transaction, because usually nothing is to be done."""
        perform = self.service.perform
        return await perform.read(is_needed) and await perform.change(change)
