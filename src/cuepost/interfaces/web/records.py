"""The event catalogue."""

import json

from starlette.responses import Response

from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.web.page_context import PageContext, PageRoute


async def show_catalogue(context: PageContext) -> Response:
    entries = [
        (entry, json.dumps(entry.sample(), indent=2), json.dumps(entry.schema(), indent=2))
        for entry in CATALOG
    ]
    return context.page("event_types.html", section="event-types", entries=entries)


ROUTES = (PageRoute("/settings/event-types", get=show_catalogue),)
