"""The audit trail and the event catalogue."""

import json

from starlette.responses import Response

from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.web.delivery_filters import uuid_in
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import Page

ROWS = 50


async def show_audit(context: PageContext) -> Response:
    before = uuid_in(context.query("before"))
    found = await context.browse(
        lambda transaction: context.service.history.audit(
            transaction, context.caller, Page(ROWS + 1, before)
        )
    )
    return context.page(
        "audit.html",
        section="audit",
        entries=found[:ROWS],
        further=found[ROWS - 1].id if len(found) > ROWS else None,
    )


async def show_catalogue(context: PageContext) -> Response:
    entries = [
        (entry, json.dumps(entry.sample(), indent=2), json.dumps(entry.schema(), indent=2))
        for entry in CATALOG
    ]
    return context.page("event_types.html", section="event-types", entries=entries)


ROUTES = (
    PageRoute("/settings/audit", get=show_audit),
    PageRoute("/settings/event-types", get=show_catalogue),
)
