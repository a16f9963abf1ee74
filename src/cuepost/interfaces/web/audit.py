"""The audit trail with its filters, and its export."""

from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.responses import Response, StreamingResponse

from cuepost.application.search_audit import Trail, searches
from cuepost.domain.access import Scope
from cuepost.domain.audit import GROUPS, Action, AuditEntry, actions_in
from cuepost.domain.errors import Gone, NotFound
from cuepost.interfaces.web import audit_export, filter_chips
from cuepost.interfaces.web.audit_sentences import Names, actor, sentence
from cuepost.interfaces.web.delivery_filters import (
    RANGES,
    AddressFilters,
    given_in,
    instant_in,
    since_in,
    uuid_in,
)
from cuepost.interfaces.web.endpoint_list import called
from cuepost.interfaces.web.endpoints import MOST_SHOWN
from cuepost.interfaces.web.members import MOST_SHOWN as MOST_MEMBERS
from cuepost.interfaces.web.page_context import PageContext, PageRoute
from cuepost.ports.records import AuditFilter, Page
from cuepost.ports.store import Transaction

HERE = "/settings/audit"
ROWS = 50
LONGEST_ACTOR = 300
MOST_EXPORTED = 50_000
KINDS = {"user": "Any member", "key": "Any API key", "operator": "Any operator"}
VALID = {
    "action": actions_in,
    "actor": lambda text: text.isprintable() and 0 < len(text) <= LONGEST_ACTOR,
    "range": RANGES.__contains__,
    "since": instant_in,
    "until": instant_in,
}


@dataclass(frozen=True, slots=True)
class AuditFilters(AddressFilters):
    chosen: AuditFilter


def audit_filters(context: PageContext) -> AuditFilters:
    given = given_in(context, VALID)
    return AuditFilters(
        given,
        uuid_in(context.query("before")),
        AuditFilter(
            actions_in(given["action"]) if "action" in given else None,
            given.get("actor"),
            since_in(given, context.site.now()),
            instant_in(given.get("until", "")),
        ),
    )


async def show(context: PageContext) -> Response:
    filters = audit_filters(context)
    found = await _search(context, filters, Page(ROWS, filters.before))
    names = Names(context.site.root, context.caller.actor, await _names(context, found.entries))
    actors = await _actors(context) | {each.actor: actor(each, names) for each in found.entries}
    chosen = filters.given.get("actor")
    if chosen is not None:
        actors.setdefault(chosen, chosen)
    return context.page(
        "audit.html",
        section="audit",
        filters=filters,
        entries=[(entry, sentence(entry, names)) for entry in found.entries],
        further=found.further,
        presets=(filter_chips.ranges(filters), filter_chips.audit_groups(filters)),
        chips=filter_chips.chips(filters, actors),
        actors=actors,
        groups={group: sorted(actions_in(group), key=list(Action).index) for group in GROUPS},
        formats=audit_export.FORMATS,
        most_exported=MOST_EXPORTED,
    )


async def export(context: PageContext) -> Response:
    """A stream of parts, none of which is large; each is read in a transaction of its own."""
    filters, name = audit_filters(context), context.query("format")
    if name not in audit_export.FORMATS:
        raise NotFound("There is no such format.")
    parts = searches(lambda page: _search(context, filters, page), MOST_EXPORTED)
    written = audit_export.written(name, parts)
    # The first part is read before the answer, so that a refusal is still a page.
    first = await anext(written)
    return StreamingResponse(
        _all(first, written),
        media_type=audit_export.FORMATS[name].media_type,
        headers={
            "content-disposition": f'attachment; filename="audit-trail.{name}"',
            "cache-control": "no-store",
        },
    )


async def _all(first: str, rest: AsyncIterator[str]) -> AsyncIterator[str]:
    yield first
    async for part in rest:
        yield part


async def _search(context: PageContext, filters: AuditFilters, page: Page) -> Trail:
    return await context.browse(
        lambda transaction: context.service.history.audit(
            transaction, context.caller, filters.chosen, page
        )
    )


async def _actors(context: PageContext) -> dict[str, str]:
    """The kinds of actors, the members and the API keys that there are now, with their names."""
    service, caller = context.service, context.caller

    async def read(transaction: Transaction) -> dict[str, str]:
        members = await service.members.page(transaction, caller, Page(MOST_MEMBERS))
        keys = await service.keys.all(transaction, caller)
        return {f"user:{each.id}": each.email or "A member without e-mail" for each in members} | {
            f"key:{each.id}": f"The API key {each.name}" for each in keys
        }

    return KINDS | await context.browse(read)


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


ROUTES = (
    PageRoute(HERE, get=show),
    PageRoute(f"{HERE}/export", get=export, reads=Scope.WEBHOOKS_MANAGE),
)
