"""Events, with their deliveries or the reason why an event has none."""

from collections.abc import Sequence

from starlette.responses import Response

from cuepost.application.browse_history import EventView
from cuepost.application.manage_webhooks import EndpointView
from cuepost.domain.event_catalog import BY_NAME, CATALOG
from cuepost.interfaces.web import filter_chips
from cuepost.interfaces.web.deliveries import project_names
from cuepost.interfaces.web.delivery_filters import list_filters
from cuepost.interfaces.web.endpoints import MOST_SHOWN, names_of
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.interfaces.web.sentences import SILENCES
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ALL = "/settings/events"
ONE = "/settings/events/{event_id}"
ROWS = 20


async def show_all(context: PageContext) -> Response:
    filters = list_filters(context, None)
    wanted = EventFilter(
        event_type=filters.deliveries.event_type,
        project_id=filters.deliveries.project_id,
        since=filters.deliveries.since,
        until=filters.deliveries.until,
    )
    found = await context.browse(
        lambda transaction: context.service.history.events(
            transaction, context.caller, wanted, Page(ROWS + 1, filters.before)
        )
    )
    concerned = [each.event.project_id for each in found[:ROWS]]
    names = await project_names(context, [*concerned, filters.deliveries.project_id])
    return context.page(
        "events/list.html",
        section="events",
        filters=filters,
        ranges=filter_chips.ranges(filters),
        chips=filter_chips.chips(filters, names),
        names=names,
        events=found[:ROWS],
        further=found[ROWS - 1].event.id if len(found) > ROWS else None,
        types=[entry.name for entry in CATALOG],
    )


async def show(context: PageContext) -> Response:
    event_id = context.id("event_id")

    async def read(transaction: Transaction) -> tuple[EventView, Sequence[EndpointView]]:
        service, caller = context.service, context.caller
        found = await service.history.event(transaction, caller, event_id)
        return found, await service.webhooks.page(transaction, caller, Page(MOST_SHOWN))

    found, endpoints = await context.see(read)
    event, entry = found.event, BY_NAME.get(found.event.type)
    projects = await project_names(context, [event.project_id])
    return context.page(
        "events/show.html",
        section="events",
        event=event,
        deliveries=found.deliveries,
        meaning=entry.meaning if entry else "",
        names=names_of(endpoints),
        project_name=projects.get(str(event.project_id)),
        silence=SILENCES[event.reason] if event.reason else None,
    )


ROUTES = (PageRoute(ALL, get=show_all), PageRoute(ONE, get=show))
