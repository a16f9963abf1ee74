"""Why did my last export not arrive? Everything that is known about it, read in one go."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.application.browse_history import with_last_attempts
from cuepost.application.delivery_causes import of_delivery
from cuepost.application.finding import Cause, Finding
from cuepost.application.silence_causes import (
    access_closed,
    access_expired,
    cancelled,
    export_failed,
    history_gone,
    no_endpoint,
    not_exported,
    nothing_happened,
    project_deleted,
    standalone_transcript,
)
from cuepost.domain.access import Caller, Scope
from cuepost.domain.eligibility import Ineligible, ineligibility
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.errors import NotFound
from cuepost.domain.event import Event
from cuepost.domain.event_catalog import BY_STATUS
from cuepost.domain.project import Project, ProjectStatus
from cuepost.ports.history import EventFilter
from cuepost.ports.records import Page
from cuepost.ports.runtime import Clock
from cuepost.ports.store import Transaction

ENDPOINTS_LOOKED_AT = 1_000
PROJECTS_LOOKED_AT = 100
NEWEST = Page(limit=1)
_ENDS = (ProjectStatus.COMPLETED, ProjectStatus.FAILED, ProjectStatus.CANCELLED)
_END_EVENTS = tuple(BY_STATUS[status].name for status in _ENDS)
_WAITING = (
    ProjectStatus.QUEUED,
    ProjectStatus.PROCESSING,
    ProjectStatus.READY,
    ProjectStatus.EXPORTING,
)


@dataclass(frozen=True, slots=True)
class Question:
    """About the newest export, unless a project, an event or an endpoint is named."""

    project_id: UUID | None = None
    event_id: UUID | None = None
    event_type: str | None = None
    webhook_id: UUID | None = None

    @property
    def is_open(self) -> bool:
        return self.project_id is None and self.event_id is None and self.event_type is None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was looked at, and what was found, the likeliest cause first."""

    project: Project | None
    event: Event | None
    findings: Sequence[Finding]

    @property
    def arrived(self) -> bool:
        return all(each.cause is Cause.DELIVERED for each in self.findings)


@dataclass(frozen=True, slots=True)
class ExplainDelivery:
    clock: Clock

    async def explain(
        self, transaction: Transaction, caller: Caller, question: Question
    ) -> Diagnosis:
        """An account whose access is closed may ask as well: that is then the answer."""
        caller.require(Scope.WEBHOOKS_READ)
        account = await transaction.accounts.get(caller.account)
        if account is None or not account.webhooks_enabled:
            return Diagnosis(None, None, [access_closed()])
        endpoints = await self._endpoints(transaction, account.id, question.webhook_id)
        project, event = await self._subject(transaction, account.id, question)
        case = _Case(endpoints, project, event, self.clock.now())
        findings = case.weighed(await self._of_event(transaction, case))
        if question.is_open:
            findings = _with_unfinished(
                findings, await _unfinished_project(transaction, account.id, event)
            )
        if not endpoints and not any(each.cause is Cause.NO_ENDPOINT for each in findings):
            findings = [no_endpoint(), *findings]
        return Diagnosis(project, event, findings or [nothing_happened()])

    async def _endpoints(
        self, transaction: Transaction, account_id: UUID, chosen: UUID | None
    ) -> dict[UUID, Endpoint]:
        if chosen is None:
            found = await transaction.endpoints.page(account_id, Page(ENDPOINTS_LOOKED_AT))
            return {endpoint.id: endpoint for endpoint in found}
        endpoint = await transaction.endpoints.get(account_id, chosen)
        if endpoint is None:
            raise NotFound
        return {chosen: endpoint}

    async def _subject(
        self, transaction: Transaction, account_id: UUID, question: Question
    ) -> tuple[Project | None, Event | None]:
        if question.event_id is not None:
            event = await transaction.events.get(account_id, question.event_id)
            if event is None:
                raise NotFound
            return await _project_of(transaction, event), event
        project = None
        if question.project_id is not None:
            project = await transaction.projects.get(account_id, question.project_id)
            if project is None:
                raise NotFound
        event = await _newest_event(transaction, account_id, question)
        if project is None and event is not None:
            project = await _project_of(transaction, event)
        return project, event

    async def _of_event(self, transaction: Transaction, case: "_Case") -> list[Finding]:
        if case.event is None:
            return []
        account_id = case.event.account_id
        found = await transaction.deliveries.of_events(account_id, [case.event.id])
        concerned = [each for each in found.get(case.event.id, ()) if each.webhook_id in case.known]
        if not concerned:
            return case.of_silence()
        views = await with_last_attempts(transaction, account_id, concerned)
        return [
            of_delivery(
                view.delivery, case.known[view.delivery.webhook_id], view.last_attempt, case.now
            )
            for view in views
        ]


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known, once it was read."""

    known: dict[UUID, Endpoint]
    project: Project | None
    event: Event | None
    now: datetime

    def weighed(self, of_event: list[Finding]) -> list[Finding]:
        """What is said of the project goes before, unless the event says it or has arrived."""
        arrived = bool(of_event) and all(each.cause is Cause.DELIVERED for each in of_event)
        said = {each.cause for each in of_event}
        of_project = [
            each
            for each in self._of_project()
            if each.cause not in said and not (arrived and each.cause in _STOPS)
        ]
        return [*of_project, *of_event]

    def _of_project(self) -> list[Finding]:
        """Why the project itself would not notify, or has not got that far."""
        if self.project is None:
            return []
        ineligible = ineligibility(self.project, self.now)
        if ineligible is not None:
            return [_INELIGIBLE[ineligible]()]
        if self.project.status in _WAITING:
            return [not_exported(self.project)]
        if self.event is None:
            return [history_gone(self.project)]
        return self._ended_otherwise(self.event)

    def of_silence(self) -> list[Finding]:
        """Why the event was sent to nobody, or not to the endpoint in question."""
        assert self.event is not None
        reason = self.event.reason
        if reason is not None and reason.value in list(Ineligible):
            return [_INELIGIBLE[Ineligible(reason.value)]()]
        if not self.known:
            return [no_endpoint()]
        return [self._not_subscribed(endpoint, self.event) for endpoint in self.known.values()]

    def _ended_otherwise(self, event: Event) -> list[Finding]:
        if event.type == BY_STATUS[ProjectStatus.FAILED].name:
            return [export_failed(event)]
        if event.type == BY_STATUS[ProjectStatus.CANCELLED].name:
            return [cancelled()]
        return []

    def _not_subscribed(self, endpoint: Endpoint, event: Event) -> Finding:
        if event.type not in endpoint.events:
            return Finding(
                Cause.NOT_SUBSCRIBED,
                f"The endpoint {endpoint.url} is not subscribed to {event.type}, but to "
                f"{', '.join(endpoint.events)}.",
                f"Add {event.type} to the endpoint's events; it then gets those to come.",
                endpoint.id,
            )
        if endpoint.updated_at > event.created_at:
            return Finding(
                Cause.SUBSCRIBED_LATER,
                f"Nobody was subscribed to {event.type} when this happened; the endpoint "
                f"{endpoint.url} was created or changed afterwards.",
                "It gets those to come; read this one from the list of events, or export again.",
                endpoint.id,
            )
        # Of history from before such events had a cancelled delivery.
        return Finding(
            Cause.ACCESS_WAS_CLOSED,
            "The account's access to webhooks was closed when this happened.",
            "Access is open now; read this event from the list of events, or export again.",
            endpoint.id,
        )


_STOPS = (Cause.PROJECT_DELETED, Cause.PROJECT_ACCESS_EXPIRED)
_INELIGIBLE = {
    Ineligible.PROJECT_DELETED: project_deleted,
    Ineligible.PROJECT_ACCESS_EXPIRED: access_expired,
    Ineligible.STANDALONE_TRANSCRIPT: standalone_transcript,
}


async def _newest_event(
    transaction: Transaction, account_id: UUID, question: Question
) -> Event | None:
    types: Iterable[str] = (question.event_type,) if question.event_type else _END_EVENTS
    found = [
        event
        for each in types
        for event in await transaction.events.page(
            account_id, EventFilter(event_type=each, project_id=question.project_id), NEWEST
        )
    ]
    return max(found, key=lambda event: event.id, default=None)


async def _unfinished_project(
    transaction: Transaction, account_id: UUID, event: Event | None
) -> Project | None:
    """One that moved after the newest event and has not ended: it may be the one that is meant."""
    projects = await transaction.projects.page(account_id, Page(PROJECTS_LOOKED_AT))
    moved = [
        each
        for each in projects
        if each.status in _WAITING and (event is None or each.updated_at > event.created_at)
    ]
    return max(moved, key=lambda each: each.updated_at, default=None)


async def _project_of(transaction: Transaction, event: Event) -> Project | None:
    if event.project_id is None:
        return None
    return await transaction.projects.get(event.account_id, event.project_id)


def _with_unfinished(findings: list[Finding], project: Project | None) -> list[Finding]:
    """Where the newest event has arrived, the question must be about what has not ended yet."""
    if project is None or any(each.cause is Cause.NOT_EXPORTED_YET for each in findings):
        return findings
    arrived = all(each.cause is Cause.DELIVERED for each in findings)
    unfinished = not_exported(project)
    return [unfinished, *findings] if arrived else [*findings, unfinished]
