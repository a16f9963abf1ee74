"""Tools for events, event types and the audit trail."""

from cuepost.domain.access import Scope
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.mcp.kinds import ChosenType, EventId, Paged, ProjectId, Since, Until
from cuepost.interfaces.mcp.tool import Arguments, NoArguments, Tool, ToolContext
from cuepost.interfaces.wire_models.audit import AuditEntry, AuditList
from cuepost.interfaces.wire_models.event_types import (
    EventType,
    EventTypeList,
    known_type,
)
from cuepost.interfaces.wire_models.events import Event, EventList
from cuepost.interfaces.wire_models.paging import cut
from cuepost.interfaces.wire_models.shapes import optional_instant
from cuepost.ports.history import EventFilter


class ListEvents(Paged, frozen=True):
    type: ChosenType | None = None
    project_id: ProjectId | None = None
    since: Since | None = None
    until: Until | None = None

    def chosen(self) -> EventFilter:
        return EventFilter(
            event_type=known_type(self.type),
            project_id=self.project_id,
            since=optional_instant(self.since, "since"),
            until=optional_instant(self.until, "until"),
        )


class OneEvent(Arguments, frozen=True):
    event_id: EventId


async def events(work: ToolContext, wanted: ListEvents) -> EventList:
    views = await work.service.history.events(
        work.transaction, work.caller, wanted.chosen(), wanted.page()
    )
    return EventList(*cut([Event.of(view) for view in views], wanted.limit))


async def event(work: ToolContext, wanted: OneEvent) -> Event:
    view = await work.service.history.event(work.transaction, work.caller, wanted.event_id)
    return Event.of(view)


async def event_types(work: ToolContext, wanted: NoArguments) -> EventTypeList:
    work.caller.require_webhooks(Scope.WEBHOOKS_READ)
    return EventTypeList([EventType.of(entry) for entry in CATALOG], None)


async def audit(work: ToolContext, wanted: Paged) -> AuditList:
    entries = await work.service.history.audit(work.transaction, work.caller, wanted.page())
    return AuditList(*cut([AuditEntry.of(each) for each in entries], wanted.limit))


TOOLS = (
    Tool(
        name="events_list",
        title="List events",
        description="List events with their delivery status for each endpoint, newest first; "
        "includes events without subscribed endpoints.",
        scope=Scope.WEBHOOKS_READ,
        arguments=ListEvents,
        answer=EventList,
        reads=True,
        may_lag=True,
        run=events,
    ),
    Tool(
        name="events_get",
        title="Get an event",
        description="Get an event with its exact body and its delivery status for each endpoint.",
        scope=Scope.WEBHOOKS_READ,
        arguments=OneEvent,
        answer=Event,
        reads=True,
        run=event,
    ),
    Tool(
        name="event_types_list",
        title="List the event types",
        description="List the event types, with JSON schema and sample of each body.",
        scope=Scope.WEBHOOKS_READ,
        answer=EventTypeList,
        reads=True,
        run=event_types,
    ),
    Tool(
        name="audit_list",
        title="List the audit trail",
        description="List who changed what in this account, by which interface, newest first.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=Paged,
        answer=AuditList,
        reads=True,
        may_lag=True,
        run=audit,
    ),
)
