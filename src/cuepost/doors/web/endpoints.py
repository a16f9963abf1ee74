"""Webhook endpoints: list, look, edit, switch, test, delete."""

from collections.abc import Sequence
from urllib.parse import urlsplit

from starlette.responses import Response

from cuepost.application.browse_history import EndFilter
from cuepost.application.manage_webhooks import EndpointChange, EndpointView
from cuepost.domain.errors import FieldError, Invalid
from cuepost.domain.event_catalog import CATALOG
from cuepost.doors.web import charts, sentences
from cuepost.doors.web.visit import PageRoute, Visit
from cuepost.ports.history import DeliveryFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

LIST = "/settings/webhooks"
ONE = "/settings/webhooks/{webhook_id}"
MOST_SHOWN = 100
RECENT = 5
CHOICES = tuple(entry for entry in CATALOG if entry.subscribable)


async def show_all(visit: Visit) -> Response:
    async def look(transaction: Transaction) -> Response:
        service, caller = visit.service, visit.caller
        views = await service.webhooks.page(transaction, caller, Page(MOST_SHOWN))
        ids = [view.endpoint.id for view in views]
        figures = await service.figures.of_endpoints(transaction, caller, ids)
        drawn = {each: charts.bars(found, 120, 28) for each, found in figures.items()}
        now = visit.house.now()
        said = {view.endpoint.id: sentences.of_health(view.health, now) for view in views}
        return visit.page(
            "webhooks/list.html",
            section="webhooks",
            views=views,
            figures=figures,
            charts=drawn,
            said=said,
        )

    return await visit.see(look)


async def show(visit: Visit) -> Response:
    return await _shown(visit)


async def _shown(visit: Visit) -> Response:
    webhook_id = visit.id("webhook_id")

    async def look(transaction: Transaction) -> Response:
        service, caller = visit.service, visit.caller
        view = await service.webhooks.get(transaction, caller, webhook_id)
        figures = await service.figures.of_endpoint(transaction, caller, webhook_id)
        recent = await service.history.search(
            transaction, caller, DeliveryFilter(webhook_id=webhook_id), EndFilter(), Page(RECENT)
        )
        return visit.page(
            "webhooks/show.html",
            section="webhooks",
            view=view,
            said=sentences.of_health(view.health, visit.house.now()),
            figures=figures,
            chart=charts.bars(figures, 720, 120),
            outcomes=charts.proportions(figures.outcomes),
            classes=charts.proportions(figures.classes),
            recent=recent.deliveries,
            host=host_of(view),
        )

    return await visit.see(look)


async def show_edit(visit: Visit) -> Response:
    view = await _view(visit)
    endpoint = view.endpoint
    return _form(
        visit,
        view,
        url=endpoint.url,
        events=endpoint.events,
        description=endpoint.description,
        errors=(),
    )


async def edit(visit: Visit) -> Response:
    webhook_id, form = visit.id("webhook_id"), visit.form
    url, events, description = (
        form.text("url").strip(),
        form.all("events"),
        form.text("description").strip(),
    )
    wanted = EndpointChange(url=url, events=events, description=description)
    try:
        await visit.do(
            lambda transaction: visit.service.webhooks.change(
                transaction, visit.caller, webhook_id, wanted
            )
        )
    except Invalid as invalid:
        return _form(
            visit,
            await _view(visit),
            url=url,
            events=events,
            description=description,
            errors=invalid.errors,
        )
    return visit.go(f"{LIST}/{webhook_id}", "saved")


async def enable(visit: Visit) -> Response:
    return await _switched(visit, True)


async def disable(visit: Visit) -> Response:
    return await _switched(visit, False)


async def end_overlap(visit: Visit) -> Response:
    webhook_id = visit.id("webhook_id")
    await visit.do(
        lambda transaction: visit.service.webhooks.end_overlap(
            transaction, visit.caller, webhook_id
        )
    )
    return visit.go(f"{LIST}/{webhook_id}", "overlap-ended")


async def send_test(visit: Visit) -> Response:
    webhook_id = visit.id("webhook_id")
    delivery = await visit.do(
        lambda transaction: visit.service.webhooks.send_test(transaction, visit.caller, webhook_id)
    )
    where = f"{LIST}/{webhook_id}/deliveries/{delivery.id}"
    if visit.is_fragment:
        return visit.page("fragments/progress.html", delivery=delivery, where=where, said=None)
    return visit.go(where, "test-sent")


async def show_delete(visit: Visit) -> Response:
    view = await _view(visit)
    return visit.page(
        "webhooks/delete.html", section="webhooks", view=view, host=host_of(view), fault=None
    )


async def delete(visit: Visit) -> Response:
    view = await _view(visit)
    if visit.form.text("host").strip().lower() != host_of(view):
        fault = f"Type {host_of(view)} to go on; nothing was deleted."
        return visit.page(
            "webhooks/delete.html",
            422,
            section="webhooks",
            view=view,
            host=host_of(view),
            fault=fault,
        )
    await visit.do(
        lambda transaction: visit.service.webhooks.delete(
            transaction, visit.caller, view.endpoint.id
        )
    )
    return visit.go(LIST, "deleted")


def host_of(view: EndpointView) -> str:
    return urlsplit(view.endpoint.url).hostname or view.endpoint.url


async def _view(visit: Visit) -> EndpointView:
    webhook_id = visit.id("webhook_id")
    return await visit.see(
        lambda transaction: visit.service.webhooks.get(transaction, visit.caller, webhook_id)
    )


async def _switched(visit: Visit, enabled: bool) -> Response:
    webhook_id = visit.id("webhook_id")
    await visit.do(
        lambda transaction: visit.service.webhooks.change(
            transaction, visit.caller, webhook_id, EndpointChange(enabled=enabled)
        )
    )
    return visit.go(f"{LIST}/{webhook_id}", "enabled" if enabled else "disabled")


def _form(
    visit: Visit,
    view: EndpointView,
    *,
    url: str,
    events: Sequence[str],
    description: str,
    errors: Sequence[FieldError],
) -> Response:
    return visit.page(
        "webhooks/edit.html",
        422 if errors else 200,
        section="webhooks",
        view=view,
        url=url,
        events=events,
        description=description,
        errors=errors,
        choices=CHOICES,
    )


ROUTES = (
    PageRoute(LIST, get=show_all),
    PageRoute(f"{ONE}/edit", get=show_edit, post=edit),
    PageRoute(f"{ONE}/enable", post=enable),
    PageRoute(f"{ONE}/disable", post=disable),
    PageRoute(f"{ONE}/end-overlap", post=end_overlap),
    PageRoute(f"{ONE}/test", post=send_test),
    PageRoute(f"{ONE}/delete", get=show_delete, post=delete),
    PageRoute(ONE, get=show),
)
