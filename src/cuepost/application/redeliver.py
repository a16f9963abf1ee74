"""Sends ended deliveries again: one, or many by a bulk retry."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuepost.application.access import require_open
from cuepost.application.audit_trail import AuditTrail
from cuepost.application.browse_history import DeliveryView, with_last_attempts
from cuepost.domain.access import AccountState, Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import FINAL, Delivery, DeliveryStatus
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.errors import (
    EndpointDisabled,
    FieldError,
    Invalid,
    NotFound,
    ProjectNotEligible,
)
from cuepost.domain.project import ineligibility
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource

DEFAULT_STATUSES = (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)


@dataclass(frozen=True, slots=True)
class Redeliver:
    clock: Clock
    ids: IdSource
    audit: AuditTrail

    async def one(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, delivery_id: UUID
    ) -> DeliveryView:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        named = await transaction.deliveries.get(account_id, delivery_id)
        if named is None or named.webhook_id != webhook_id:
            raise NotFound
        # Project, endpoint, delivery: the order in which milestone reports lock them.
        eligible = await self._eligible(transaction, [named])
        endpoint = await self._enabled_endpoint(transaction, caller, webhook_id)
        delivery = await transaction.deliveries.lock(account_id, delivery_id)
        if delivery is None:
            raise NotFound
        delivery.require_final()
        if not eligible:
            raise ProjectNotEligible
        now = self.clock.now()
        await transaction.deliveries.send_again(endpoint.account_id, [delivery_id], now)
        await self.audit.note(
            transaction, caller, Action.DELIVERY_RETRIED, endpoint.account_id, delivery_id
        )
        reopened = await transaction.deliveries.get(endpoint.account_id, delivery_id)
        assert reopened is not None
        return (await with_last_attempts(transaction, endpoint.account_id, [reopened]))[0]

    async def start_bulk(
        self,
        transaction: Transaction,
        caller: Caller,
        webhook_id: UUID,
        *,
        since: datetime,
        until: datetime | None,
        statuses: Sequence[DeliveryStatus],
        dry_run: bool,
        include_delivered: bool = False,
    ) -> BulkRetry:
        """A dry run only counts the deliveries."""
        endpoint = await self._enabled_endpoint(transaction, caller, webhook_id)
        now = self.clock.now()
        job = BulkRetry(
            account_id=endpoint.account_id,
            id=self.ids(now),
            webhook_id=webhook_id,
            since=since,
            until=until or now,
            statuses=_ended(statuses or DEFAULT_STATUSES),
            state=BulkRetryState.RUNNING,
            count=0,
            created_at=now,
            include_delivered=include_delivered,
        )
        job = replace(job, count=await transaction.bulk_retries.count_candidates(job))
        if not dry_run:
            await transaction.bulk_retries.add(job)
            await self.audit.note(
                transaction, caller, Action.BULK_RETRY_STARTED, job.account_id, webhook_id
            )
        return job

    async def bulk(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, job_id: UUID
    ) -> BulkRetry:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_READ)
        job = await transaction.bulk_retries.get(account_id, webhook_id, job_id)
        if job is None:
            raise NotFound
        return job

    async def cancel_bulk(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID, job_id: UUID
    ) -> BulkRetry:
        """Stop the job; deliveries that it has queued already are still sent."""
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        job = await transaction.bulk_retries.lock(account_id, job_id)
        if job is None or job.webhook_id != webhook_id:
            raise NotFound
        if job.state is BulkRetryState.RUNNING:
            job = replace(job, state=BulkRetryState.CANCELLED, finished_at=self.clock.now())
            await transaction.bulk_retries.save(job)
            await self.audit.note(
                transaction, caller, Action.BULK_RETRY_CANCELLED, account_id, webhook_id
            )
        return job

    async def bulk_step(
        self, transaction: Transaction, account_id: UUID, job_id: UUID, limit: int
    ) -> bool:
        """Send the next deliveries again; return True if there may be more."""
        job = await transaction.bulk_retries.lock(account_id, job_id)
        if job is None or job.state is not BulkRetryState.RUNNING:
            return False
        candidates = await transaction.bulk_retries.next_candidates(job, limit)
        chosen = await self._eligible(transaction, candidates)
        account = await transaction.accounts.hold(account_id)
        if account is not None and account.state is not AccountState.LIVE:
            return False
        endpoint = await transaction.endpoints.lock(account_id, job.webhook_id)
        is_open = account is not None and account.webhooks_enabled
        if not is_open or endpoint is None or not endpoint.enabled or not candidates:
            await transaction.bulk_retries.save(_finished(job, self.clock.now()))
            return False
        sent = await transaction.deliveries.send_again(account_id, chosen, self.clock.now())
        await transaction.bulk_retries.save(
            replace(
                job,
                retried=job.retried + sent,
                skipped=job.skipped + len(candidates) - sent,
                position=candidates[-1].id,
            )
        )
        return True

    async def _enabled_endpoint(
        self, transaction: Transaction, caller: Caller, webhook_id: UUID
    ) -> Endpoint:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        await require_open(transaction, account_id)
        endpoint = await transaction.endpoints.lock(account_id, webhook_id)
        if endpoint is None:
            raise NotFound
        if not endpoint.enabled:
            raise EndpointDisabled
        return endpoint

    async def _eligible(
        self, transaction: Transaction, deliveries: Sequence[Delivery]
    ) -> list[UUID]:
        """The ids of test deliveries, and of deliveries whose project is still eligible."""
        if not deliveries:
            return []
        account_id, now = deliveries[0].account_id, self.clock.now()
        named = {each.project_id for each in deliveries if each.project_id is not None}
        projects = await transaction.projects.lock([(account_id, each) for each in named])
        eligible = {None} | {
            project.id for project in projects.values() if ineligibility(project, now) is None
        }
        return [each.id for each in deliveries if each.project_id in eligible]


def _ended(statuses: Sequence[DeliveryStatus]) -> tuple[DeliveryStatus, ...]:
    if any(status not in FINAL for status in statuses):
        raise Invalid(
            FieldError(
                "statuses",
                "status_not_final",
                f"Only ended deliveries can be sent again: {', '.join(FINAL)}.",
            )
        )
    return tuple(status for status in FINAL if status in statuses)


def _finished(job: BulkRetry, now: datetime) -> BulkRetry:
    return replace(job, state=BulkRetryState.FINISHED, finished_at=now)
