"""Deliveries: the list with filters and search, the page of one delivery, and retries."""

from collections.abc import Iterable
from contextlib import suppress
from shlex import quote
from uuid import UUID

from starlette.responses import Response

from cuepost.application.browse_history import DeliveryDetail, Searched
from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.attempt import Attempt, Outcome
from cuepost.domain.delivery import FINAL, DeliveryStatus
from cuepost.domain.errors import Gone, NotFound
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.web import charts, filter_chips, sentences
from cuepost.interfaces.web.delivery_filters import CLASSES, ListFilters, list_filters, uuid_in
from cuepost.interfaces.web.endpoint_list import called
from cuepost.interfaces.web.endpoints import LIST, MOST_SHOWN, ONE, names_of, view_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ALL = "/settings/deliveries"
EVENTS = "/settings/events"
DELIVERY = f"{ONE}/deliveries/{{delivery_id}}"
ROWS = 20


async def show_all(context: PageContext) -> Response:
    return await _list(context, of_endpoint=False)


async def show_of_endpoint(context: PageContext) -> Response:
    return await _list(context, of_endpoint=True)


async def _list(context: PageContext, *, of_endpoint: bool) -> Response:
    if context.query("q"):
        return await _search(context)
    filters = list_filters(context, context.id("webhook_id") if of_endpoint else None)
    view = await view_of(context) if of_endpoint else None
    found = await context.browse(lambda transaction: rows(context, transaction, filters))
    return await _list_page(context, filters, found, view)


async def rows(context: PageContext, transaction: Transaction, filters: ListFilters) -> Searched:
    return await context.service.history.search(
        transaction, context.caller, filters.deliveries, filters.end, Page(ROWS, filters.before)
    )


async def _list_page(
    context: PageContext, filters: ListFilters, found: Searched, view: EndpointView | None
) -> Response:
    endpoints = await context.see(
        lambda transaction: context.service.webhooks.page(
            transaction, context.caller, Page(MOST_SHOWN)
        )
    )
    names = await project_names(context, [filters.deliveries.project_id])
    names |= {str(each.endpoint.id): called(each.endpoint) for each in endpoints}
    return context.page(
        "deliveries/list.html",
        section="webhooks" if view else "deliveries",
        view=view,
        found=found,
        filters=filters,
        ranges=filter_chips.ranges(filters),
        status_presets=filter_chips.statuses(filters),
        chips=filter_chips.chips(filters, names),
        urls={each.endpoint.id: each.endpoint.url for each in endpoints},
        names=names_of(endpoints),
        endpoints=endpoints,
        of_endpoint=view is not None,
        here=f"{LIST}/{view.endpoint.id}/deliveries" if view else ALL,
        statuses=list(DeliveryStatus),
        outcomes=list(Outcome),
        classes=CLASSES,
        types=[entry.name for entry in CATALOG],
    )


async def project_names(context: PageContext, project_ids: Iterable[UUID | None]) -> dict[str, str]:
    """By id, as text; without projects that were deleted."""

    async def look(transaction: Transaction) -> dict[str, str]:
        names = {}
        for each in {each for each in project_ids if each is not None}:
            with suppress(NotFound, Gone):
                project = await context.service.projects.get(transaction, context.caller, each)
                names[str(each)] = project.name
        return names

    return await context.see(look)


async def _search(context: PageContext) -> Response:
    """An id leads to what it belongs to, a text to the endpoint or the project that it names."""
    text = context.query("q")
    wanted = uuid_in(text)
    where = None if wanted is None else await _address_of(context, wanted)
    if where is not None:
        return context.go(where)
    named = await context.see(
        lambda transaction: context.service.history.find_named(transaction, context.caller, text)
    )
    found = [
        *((called(each), each.url, f"{LIST}/{each.id}/deliveries") for each in named.endpoints),
        *((each.name, "project", f"{ALL}?project={each.id}") for each in named.projects),
    ]
    if len(found) == 1:
        return context.go(found[0][2])
    return context.page(
        "deliveries/search.html", section="deliveries", search_text=text, found=found
    )


async def _address_of(context: PageContext, wanted: UUID) -> str | None:
    found = await context.see(
        lambda transaction: context.service.history.find(transaction, context.caller, wanted)
    )
    if found.delivery is not None:
        return f"{LIST}/{found.delivery.webhook_id}/deliveries/{found.delivery.id}"
    if found.event_id is not None:
        return f"{EVENTS}/{found.event_id}"
    return f"{ALL}?project={found.project_id}" if found.project_id is not None else None


async def show(context: PageContext) -> Response:
    webhook_id, delivery_id = context.id("webhook_id"), context.id("delivery_id")

    async def read(transaction: Transaction) -> tuple[DeliveryDetail, EndpointView]:
        service, caller = context.service, context.caller
        view = await service.webhooks.get(transaction, caller, webhook_id)
        return await service.history.delivery(transaction, caller, webhook_id, delivery_id), view

    detail, view = await context.see(read)
    last, project_id = detail.last_attempt, detail.delivery.project_id
    names = await project_names(context, [project_id])
    signed = last if last and last.request_headers else None
    return context.page(
        "deliveries/show.html",
        section="deliveries",
        view=view,
        delivery=detail.delivery,
        event=detail.event,
        project_name=names.get(str(project_id)) or "Project",
        attempts=[(each, charts.waterfall(each)) for each in reversed(detail.attempts)],
        summary=sentences.of_delivery(detail.delivery, last),
        curl=_curl(view.endpoint.url, signed, detail.event.body) if signed else None,
        is_final=detail.delivery.status in FINAL,
    )


async def show_progress(context: PageContext) -> Response:
    """A fragment that reloads itself until the delivery has ended."""
    webhook_id, delivery_id = context.id("webhook_id"), context.id("delivery_id")
    detail = await context.see(
        lambda transaction: context.service.history.delivery(
            transaction, context.caller, webhook_id, delivery_id
        )
    )
    where = f"{LIST}/{webhook_id}/deliveries/{delivery_id}"
    if not context.is_fragment:
        return context.go(where)
    delivery = detail.delivery
    summary = sentences.of_delivery(delivery, detail.last_attempt)
    response = context.page(
        "fragments/progress.html", delivery=delivery, where=where, summary=summary
    )
    if context.query("seen") != f"{delivery.status}-{delivery.attempt_count}":
        # Other parts of the page show the endpoint's health and figures.
        response.headers["hx-trigger"] = "delivery-changed"
    return response


async def retry(context: PageContext) -> Response:
    webhook_id, delivery_id = context.id("webhook_id"), context.id("delivery_id")
    await context.do(
        lambda transaction: context.service.redeliver.one(
            transaction, context.caller, webhook_id, delivery_id
        )
    )
    return context.go(f"{LIST}/{webhook_id}/deliveries/{delivery_id}", "retried")


def _curl(url: str, attempt: Attempt, body: bytes) -> str:
    lines = [f"curl -X POST {quote(url)}"]
    lines += [f"  -H {quote(f'{name}: {value}')}" for name, value in attempt.request_headers]
    lines.append(f"  --data-raw {quote(body.decode())}")
    return " \\\n".join(lines)


ROUTES = (
    PageRoute(ALL, get=show_all),
    PageRoute(f"{ONE}/deliveries", get=show_of_endpoint),
    PageRoute(DELIVERY, get=show),
    PageRoute(f"{DELIVERY}/progress", get=show_progress),
    PageRoute(f"{DELIVERY}/retry", post=retry),
)
