"""Tools for events, event types and the audit trail."""

from dataclasses import replace
from typing import Annotated

from msgspec import Meta

from cuepost.domain.access import Scope
from cuepost.domain.audit import GROUPS
from cuepost.domain.event_catalog import CATALOG
from cuepost.interfaces.mcp.kinds import ChosenType, EventId, Paged, ProjectId, Since, Until
from cuepost.interfaces.mcp.tool import Arguments, NoArguments, Tool, ToolContext
from cuepost.interfaces.wire_models.audit import Actor, AuditList, known_actions
from cuepost.interfaces.wire_models.event_types import (
    EventType,
    EventTypeList,
    known_type,
)
from cuepost.interfaces.wire_models.events import Event, EventList
from cuepost.interfaces.wire_models.paging import cut
from cuepost.interfaces.wire_models.shapes import optional_instant
from cuepost.ports.history import EventFilter
from cuepost.ports.records import AuditFilter, Page


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


# Without the list of actions, which would cost an agent tokens in each conversation.
AuditAction = Annotated[
    str,
    Meta(
        max_length=60,
        description=f"An action such as webhook.created, or a group: {', '.join(GROUPS)}.",
    ),
]


class ListAudit(Paged, frozen=True):
    action: AuditAction | None = None
    actor: Actor | None = None
    since: Since | None = None
    until: Until | None = None

    def chosen(self) -> AuditFilter:
        return AuditFilter(
            known_actions(self.action),
            self.actor,
            optional_instant(self.since, "since"),
            optional_instant(self.until, "until"),
        )

    def page(self) -> Page:
        """The search itself detects whether there is a next page."""
        return replace(super().page(), limit=self.limit)


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


async def audit(work: ToolContext, wanted: ListAudit) -> AuditList:
    found = await work.service.history.audit(
        work.transaction, work.caller, wanted.chosen(), wanted.page()
    )
    return AuditList.of(found)


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
        description="List who changed what in this account, by which interface, newest first; "
        "filter by action, actor and time. The list ends when nextCursor is null.",
        scope=Scope.WEBHOOKS_MANAGE,
        arguments=ListAudit,
        answer=AuditList,
        reads=True,
        may_lag=True,
        run=audit,
    ),
)
