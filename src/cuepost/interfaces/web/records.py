"""The audit trail and the event catalogue."""

import json
from collections.abc import Sequence
from contextlib import suppress

from starlette.responses import Response

from cuepost.domain.audit import AuditEntry
from cuepost.domain.errors import Gone, NotFound
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.web.audit_sentences import Names, sentence
from cuepost.interfaces.web.delivery_filters import uuid_in
from cuepost.interfaces.web.endpoint_list import called
from cuepost.interfaces.web.endpoints import MOST_SHOWN
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

ROWS = 50


async def show_audit(context: PageContext) -> Response:
    before = uuid_in(context.query("before"))
    found = await context.browse(
        lambda transaction: context.service.history.audit(
            transaction, context.caller, Page(ROWS + 1, before)
        )
    )
    entries = found[:ROWS]
    names = Names(context.site.root, context.caller.actor, await _names(context, entries))
    return context.page(
        "audit.html",
        section="audit",
        entries=[(entry, sentence(entry, names)) for entry in entries],
        further=found[ROWS - 1].id if len(found) > ROWS else None,
    )


async def _names(context: PageContext, entries: Sequence[AuditEntry]) -> dict[str, str]:
    """Of endpoints, keys and the projects that the entries are about, by id."""
    service, caller = context.service, context.caller
    projects = {entry.subject for entry in entries if entry.action.startswith("project.")}

    async def read(transaction: Transaction) -> dict[str, str]:
        names = {str(key.id): key.name for key in await service.keys.all(transaction, caller)}
        if caller.webhooks_enabled:
            views = await service.webhooks.page(transaction, caller, Page(MOST_SHOWN))
            names |= {str(view.endpoint.id): called(view.endpoint) for view in views}
        for project_id in filter(None, map(uuid_in, filter(None, projects))):
            with suppress(NotFound, Gone):
                project = await service.projects.get(transaction, caller, project_id)
                names[str(project_id)] = project.name
        return names

    return await context.browse(read)


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
