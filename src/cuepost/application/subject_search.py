"""Finds the event or project to explain, if the question names none."""

from collections.abc import Iterable
from uuid import UUID

from cuepost.domain.endpoint import Endpoint
from cuepost.domain.event import Event
from cuepost.domain.event_catalog import BY_STATUS, SUBSCRIBABLE
from cuepost.domain.project import Project, ProjectStatus
from cuepost.ports.history import DeliveryFilter, EventFilter
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction

PROJECTS_LOOKED_AT = 100
NEWEST = Page(limit=1)
WAITING = (
    ProjectStatus.QUEUED,
    ProjectStatus.PROCESSING,
    ProjectStatus.READY,
    ProjectStatus.EXPORTING,
)
_ENDS = (ProjectStatus.COMPLETED, ProjectStatus.FAILED, ProjectStatus.CANCELLED)
_END_EVENTS = tuple(BY_STATUS[status].name for status in _ENDS)


async def newest_event(
    transaction: Transaction, account_id: UUID, event_type: str | None, project_id: UUID | None
) -> Event | None:
    types: Iterable[str] = (event_type,) if event_type else _END_EVENTS
    found = await _newest_of_each(transaction, account_id, types, project_id)
    return max(found, key=lambda event: event.id, default=None)


async def newest_sent(
    transaction: Transaction, endpoint: Endpoint, event_type: str | None
) -> Event | None:
    chosen = DeliveryFilter(webhook_id=endpoint.id, event_type=event_type)
    newest = await transaction.deliveries.page(endpoint.account_id, chosen, NEWEST)
    return await transaction.events.get(endpoint.account_id, newest[0].event_id) if newest else None


async def newest_missed(
    transaction: Transaction, endpoint: Endpoint, event_type: str | None
) -> Event | None:
    """The newest event that the endpoint did not get.

    Events since the endpoint was created come first, then events that it is subscribed to.
    """
    types = [each for each in SUBSCRIBABLE if event_type in (None, each)]
    found = await _newest_of_each(transaction, endpoint.account_id, types)

    def weight(event: Event) -> tuple[bool, bool]:
        return event.created_at >= endpoint.created_at, event.type in endpoint.events

    possible = [event for event in found if event_type or any(weight(event))]
    return max(possible, key=lambda event: (weight(event), event.id), default=None)


async def _newest_of_each(
    transaction: Transaction, account_id: UUID, types: Iterable[str], project_id: UUID | None = None
) -> list[Event]:
    return [
        event
        for each in types
        for event in await transaction.events.page(
            account_id, EventFilter(event_type=each, project_id=project_id), NEWEST
        )
    ]


async def unfinished_project(
    transaction: Transaction, account_id: UUID, event: Event | None
) -> Project | None:
    """The newest project that changed after the newest event and has not ended."""
    projects = await transaction.projects.page(account_id, Page(PROJECTS_LOOKED_AT))
    moved = [
        each
        for each in projects
        if each.status in WAITING and (event is None or each.updated_at > event.created_at)
    ]
    return max(moved, key=lambda each: each.updated_at, default=None)


async def project_of(transaction: Transaction, event: Event) -> Project | None:
    if event.project_id is None:
        return None
    return await transaction.projects.get(event.account_id, event.project_id)
