"""Sending many ended deliveries of an endpoint again: a count before, progress after."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.errors import EndpointDisabled, Invalid
from cuepost.doors.web.delivery_filters import instant_in
from cuepost.doors.web.endpoints import LIST, ONE
from cuepost.doors.web.visit import PageRoute, Visit
from cuepost.ports.store import Transaction

RETRIES = f"{ONE}/retries"
DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Wanted:
    since: datetime
    until: datetime | None
    statuses: tuple[DeliveryStatus, ...]
    include_delivered: bool = False


async def show_new(visit: Visit) -> Response:
    wanted = Wanted(
        visit.house.now() - DAY, None, (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)
    )
    return await _form(visit, wanted, None, None)


async def start(visit: Visit) -> Response:
    """First it only counts; once the count was seen, it begins."""
    wanted, counting = _wanted(visit), "begin" not in visit.form
    webhook_id = visit.id("webhook_id")

    async def act(transaction: Transaction) -> BulkRetry:
        return await visit.service.redeliver.start_bulk(
            transaction,
            visit.caller,
            webhook_id,
            since=wanted.since,
            until=wanted.until,
            statuses=wanted.statuses,
            include_delivered=wanted.include_delivered,
            dry_run=counting,
        )

    try:
        job = await visit.do(act)
    except (Invalid, EndpointDisabled) as refused:
        return await _form(visit, wanted, None, str(refused))
    if counting:
        return await _form(visit, wanted, job, None)
    return visit.go(f"{LIST}/{webhook_id}/retries/{job.id}")


async def show(visit: Visit) -> Response:
    job = await _job(visit)
    running = job.state is BulkRetryState.RUNNING
    done = job.retried + job.skipped
    share = 100 if not job.count or not running else min(round(done / job.count * 100), 100)
    context: dict[str, Any] = {
        "job": job,
        "running": running,
        "share": share,
        "section": "webhooks",
    }
    if visit.is_fragment:
        return visit.page("fragments/bulk_progress.html", **context)
    return visit.page("retries/show.html", view=await _view(visit), **context)


async def cancel(visit: Visit) -> Response:
    webhook_id, job_id = visit.id("webhook_id"), visit.id("job_id")
    await visit.do(
        lambda transaction: visit.service.redeliver.cancel_bulk(
            transaction, visit.caller, webhook_id, job_id
        )
    )
    return visit.go(f"{LIST}/{webhook_id}/retries/{job_id}", "retries-cancelled")


def _wanted(visit: Visit) -> Wanted:
    form = visit.form
    return Wanted(
        instant_in(form.text("since")) or visit.house.now() - DAY,
        instant_in(form.text("until")),
        tuple(DeliveryStatus(each) for each in form.all("statuses") if each in list(FINAL)),
        "include_delivered" in form,
    )


async def _job(visit: Visit) -> BulkRetry:
    webhook_id, job_id = visit.id("webhook_id"), visit.id("job_id")
    return await visit.see(
        lambda transaction: visit.service.redeliver.bulk(
            transaction, visit.caller, webhook_id, job_id
        )
    )


async def _view(visit: Visit) -> EndpointView:
    webhook_id = visit.id("webhook_id")
    return await visit.see(
        lambda transaction: visit.service.webhooks.get(transaction, visit.caller, webhook_id)
    )


async def _form(
    visit: Visit, wanted: Wanted, counted: BulkRetry | None, fault: str | None
) -> Response:
    return visit.page(
        "retries/new.html",
        422 if fault else 200,
        section="webhooks",
        view=await _view(visit),
        wanted=wanted,
        counted=counted,
        fault=fault,
        choices=FINAL,
    )


ROUTES = (
    PageRoute(f"{RETRIES}/new", get=show_new, post=start),
    PageRoute(f"{RETRIES}/{{job_id}}", get=show),
    PageRoute(f"{RETRIES}/{{job_id}}/cancel", post=cancel),
)
