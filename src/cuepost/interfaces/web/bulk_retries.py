"""Bulk retries of an endpoint's ended deliveries: a count before, progress after."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from starlette.responses import Response

from cuepost.domain.access import Scope
from cuepost.domain.bulk_retry import BulkRetry, BulkRetryState
from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.errors import EndpointDisabled, Invalid
from cuepost.interfaces.web.delivery_filters import instant_in
from cuepost.interfaces.web.endpoints import LIST, ONE, view_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.store import Transaction

RETRIES = f"{ONE}/retries"
DAY = timedelta(hours=24)


@dataclass(frozen=True, slots=True)
class Wanted:
    since: datetime
    until: datetime | None
    statuses: tuple[DeliveryStatus, ...]
    include_delivered: bool = False


async def show_new(context: PageContext) -> Response:
    wanted = Wanted(
        context.site.now() - DAY, None, (DeliveryStatus.FAILED, DeliveryStatus.CANCELLED)
    )
    return await _form(context, wanted, None, None)


async def start(context: PageContext) -> Response:
    """The first submission counts; the second one, with `begin`, starts the bulk retry."""
    wanted, counting = _wanted(context), "begin" not in context.form
    webhook_id = context.id("webhook_id")

    async def act(transaction: Transaction) -> BulkRetry:
        return await context.service.redeliver.start_bulk(
            transaction,
            context.caller,
            webhook_id,
            since=wanted.since,
            until=wanted.until,
            statuses=wanted.statuses,
            include_delivered=wanted.include_delivered,
            dry_run=counting,
        )

    try:
        job = await context.do(act)
    except (Invalid, EndpointDisabled) as refused:
        return await _form(context, wanted, None, str(refused))
    if counting:
        return await _form(context, wanted, job, None)
    return context.go(f"{LIST}/{webhook_id}/retries/{job.id}")


async def show(context: PageContext) -> Response:
    job = await _job(context)
    running = job.state is BulkRetryState.RUNNING
    done = job.retried + job.skipped
    share = 100 if not job.count or not running else min(round(done / job.count * 100), 100)
    values: dict[str, Any] = {
        "job": job,
        "running": running,
        "share": share,
        "section": "webhooks",
    }
    if context.is_fragment:
        return context.page("fragments/bulk_progress.html", **values)
    return context.page("retries/show.html", view=await view_of(context), **values)


async def cancel(context: PageContext) -> Response:
    webhook_id, job_id = context.id("webhook_id"), context.id("job_id")
    await context.do(
        lambda transaction: context.service.redeliver.cancel_bulk(
            transaction, context.caller, webhook_id, job_id
        )
    )
    return context.go(f"{LIST}/{webhook_id}/retries/{job_id}", "retries-cancelled")


def _wanted(context: PageContext) -> Wanted:
    form = context.form
    return Wanted(
        instant_in(form.text("since")) or context.site.now() - DAY,
        instant_in(form.text("until")),
        tuple(DeliveryStatus(each) for each in form.all("statuses") if each in list(FINAL)),
        "include_delivered" in form,
    )


async def _job(context: PageContext) -> BulkRetry:
    webhook_id, job_id = context.id("webhook_id"), context.id("job_id")
    return await context.see(
        lambda transaction: context.service.redeliver.bulk(
            transaction, context.caller, webhook_id, job_id
        )
    )


async def _form(
    context: PageContext, wanted: Wanted, counted: BulkRetry | None, fault: str | None
) -> Response:
    return context.page(
        "retries/new.html",
        422 if fault else 200,
        section="webhooks",
        view=await view_of(context),
        wanted=wanted,
        counted=counted,
        fault=fault,
        choices=FINAL,
    )


ROUTES = (
    PageRoute(f"{RETRIES}/new", get=show_new, post=start, reads=Scope.WEBHOOKS_MANAGE),
    PageRoute(f"{RETRIES}/{{job_id}}", get=show),
    PageRoute(f"{RETRIES}/{{job_id}}/cancel", post=cancel),
)
