"""The audit trail and the catalogue of events: to be read."""

import json

from starlette.responses import Response

from cuepost.domain.event_catalog import CATALOG
from cuepost.doors.web.delivery_filters import uuid_in
from cuepost.doors.web.visit import PageRoute, Visit
from cuepost.ports.records import Page

ROWS = 50


async def show_audit(visit: Visit) -> Response:
    before = uuid_in(visit.query("before"))
    found = await visit.see(
        lambda transaction: visit.service.history.audit(
            transaction, visit.caller, Page(ROWS + 1, before)
        )
    )
    return visit.page(
        "audit.html",
        section="audit",
        entries=found[:ROWS],
        further=found[ROWS - 1].id if len(found) > ROWS else None,
    )


async def show_catalogue(visit: Visit) -> Response:
    entries = [
        (entry, json.dumps(entry.sample(), indent=2), json.dumps(entry.schema(), indent=2))
        for entry in CATALOG
    ]
    return visit.page("event_types.html", section="event-types", entries=entries)


ROUTES = (
    PageRoute("/settings/audit", get=show_audit),
    PageRoute("/settings/event-types", get=show_catalogue),
)
