"""The overview of an account: what needs attention, then deliveries and latency over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from starlette.responses import Response

from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.alert import Alert, AlertKind
from cuepost.domain.health import HealthState
from cuepost.interfaces.web import sentences
from cuepost.interfaces.web.figure_charts import RANGES, figure_charts, range_in
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.times import span
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

MOST_SHOWN = 100
# A rotation that ends this soon may still surprise a receiver that has only the old secret.
OVERLAP_WARNING = timedelta(hours=24)
# The worst first.
_UNHEALTHY = (HealthState.FAILING, HealthState.DEGRADED)


@dataclass(frozen=True, slots=True)
class Attention:
    """One thing that the account's owner should look at."""

    state: str
    endpoint: EndpointView
    sentence: str


async def show(context: PageContext) -> Response:
    wanted = range_in(context.query("range"))
    if not context.caller.webhooks_enabled:
        return context.page("overview_closed.html", section="overview")
    service, caller = context.service, context.caller

    async def state(transaction: Transaction) -> tuple[Sequence[EndpointView], Sequence[Alert]]:
        views = await service.webhooks.page(transaction, caller, Page(MOST_SHOWN))
        return views, await service.alerts.open(transaction, caller)

    views, alerts = await context.see(state)
    figures = await context.browse(
        lambda transaction: service.figures.of_account(transaction, caller, wanted)
    )
    return context.page(
        "overview.html",
        section="overview",
        views=views,
        attention=needs_attention(views, alerts, context.site.now()),
        charts=figure_charts(figures, wanted),
        ranges=RANGES,
    )


def needs_attention(
    views: Sequence[EndpointView], alerts: Sequence[Alert], now: datetime
) -> list[Attention]:
    unhealthy = [
        Attention(view.health.state, view, sentences.of_health(view.health, now))
        for state in _UNHEALTHY
        for view in views
        if view.health.state is state
    ]
    behind = {each.webhook_id: each for each in alerts if each.kind is AlertKind.BACKLOG}
    backlogs = [
        Attention("backlog", view, f"deliveries have waited for {span(now - alert.since)}")
        for view in views
        if (alert := behind.get(view.endpoint.id))
    ]
    ending = [
        Attention("expiring", view, "the previous secret stops working soon")
        for view in views
        if view.keyring.previous is not None
        and view.keyring.previous.expires_at is not None
        and now < view.keyring.previous.expires_at <= now + OVERLAP_WARNING
    ]
    return unhealthy + backlogs + ending


ROUTES = (PageRoute("/settings", get=show),)
