"""Explains why the event of an export did not arrive, from everything in the store."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.application.browse_history import with_last_attempts
from cuepost.application.delivery_causes import of_delivery
from cuepost.application.finding import Finding, FindingCause
from cuepost.application.silence_causes import (
    access_closed,
    access_expired,
    cancelled,
    endpoint_disabled,
    export_failed,
    history_gone,
    no_endpoint,
    no_event_for,
    not_exported,
    not_sent_to,
    nothing_happened,
    nothing_sent,
    project_deleted,
    standalone_transcript,
)
from cuepost.application.subject_search import (
    WAITING,
    newest_event,
    newest_missed,
    newest_sent,
    project_of,
    unfinished_project,
)
from cuepost.domain.access import Caller, Scope
from cuepost.domain.endpoint import Endpoint
from cuepost.domain.errors import NotFound
from cuepost.domain.event import Event
from cuepost.domain.event_catalog import BY_STATUS
from cuepost.domain.project import Ineligible, Project, ProjectStatus, ineligibility
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock

ENDPOINTS_LOOKED_AT = 1_000


@dataclass(frozen=True, slots=True)
class Question:
    """What to explain: the named event, or the newest one of the named project.

    Without either: the newest delivery of the endpoint, tests included, or the newest export.
    """

    project_id: UUID | None = None
    event_id: UUID | None = None
    event_type: str | None = None
    webhook_id: UUID | None = None

    @property
    def names_subject(self) -> bool:
        return self.project_id is not None or self.event_id is not None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The project and event that were examined, and the findings, the likeliest cause first."""

    project: Project | None
    event: Event | None
    findings: Sequence[Finding]

    @property
    def arrived(self) -> bool:
        return all(each.cause is FindingCause.DELIVERED for each in self.findings)


@dataclass(frozen=True, slots=True)
class ExplainDelivery:
    clock: Clock

    async def explain(
        self, transaction: Transaction, caller: Caller, question: Question
    ) -> Diagnosis:
        """Also allowed for an account whose access is closed: that is the explanation then."""
        caller.require(Scope.WEBHOOKS_READ)
        account = await transaction.accounts.get(caller.account)
        if account is None or not account.webhooks_enabled:
            return Diagnosis(None, None, [access_closed()])
        endpoints = await self._endpoints(transaction, account.id, question.webhook_id)
        if question.webhook_id is not None and not question.names_subject:
            endpoint = endpoints[question.webhook_id]
            return await self._of_endpoint(transaction, endpoint, question.event_type)
        project, event = await self._subject(transaction, account.id, question)
        case = _Case(endpoints, project, event, self.clock.now())
        findings = case.weighed(await self._of_event(transaction, case))
        if question.event_type is None and not question.names_subject:
            findings = _with_unfinished(
                findings, await unfinished_project(transaction, account.id, event)
            )
        if not endpoints and not any(each.cause is FindingCause.NO_ENDPOINT for each in findings):
            findings = [no_endpoint(), *findings]
        return Diagnosis(project, event, findings or [nothing_happened()])

    async def _of_endpoint(
        self, transaction: Transaction, endpoint: Endpoint, event_type: str | None
    ) -> Diagnosis:
        """Explain its newest delivery, or why nothing was sent to it."""
        sent = await newest_sent(transaction, endpoint, event_type)
        if sent is None:
            return await self._never_sent(transaction, endpoint, event_type)
        project = await project_of(transaction, sent)
        case = _Case({endpoint.id: endpoint}, project, sent, self.clock.now())
        return Diagnosis(project, sent, case.stopped(await self._of_event(transaction, case)))

    async def _never_sent(
        self, transaction: Transaction, endpoint: Endpoint, event_type: str | None
    ) -> Diagnosis:
        event = await newest_missed(transaction, endpoint, event_type)
        project = await project_of(transaction, event) if event else None
        reasons = [] if endpoint.enabled else [endpoint_disabled(endpoint)]
        if event is not None:
            reasons += _Case({endpoint.id: endpoint}, project, event, self.clock.now()).of_silence()
        else:
            reasons.append(no_event_for(endpoint, (event_type,) if event_type else endpoint.events))
            unfinished = await unfinished_project(transaction, endpoint.account_id, None)
            reasons += [not_exported(unfinished)] if unfinished else []
        first, *rest = reasons
        return Diagnosis(project, event, [nothing_sent(endpoint, first), *rest])

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
            return await project_of(transaction, event), event
        project = None
        if question.project_id is not None:
            project = await transaction.projects.get(account_id, question.project_id)
            if project is None:
                raise NotFound
        event = await newest_event(
            transaction, account_id, question.event_type, question.project_id
        )
        if project is None and event is not None:
            project = await project_of(transaction, event)
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
    """What was read from the store."""

    known: dict[UUID, Endpoint]
    project: Project | None
    event: Event | None
    now: datetime

    def weighed(self, of_event: list[Finding]) -> list[Finding]:
        """Findings about the project first, without those that the event makes redundant."""
        arrived = bool(of_event) and all(each.cause is FindingCause.DELIVERED for each in of_event)
        known = {each.cause for each in of_event}
        of_project = [
            each
            for each in self._of_project()
            if each.cause not in known and not (arrived and each.cause in _STOPS)
        ]
        return [*of_project, *of_event]

    def stopped(self, of_delivery: list[Finding]) -> list[Finding]:
        """Findings about the delivery, after those that stop it now."""
        return [
            each
            for each in self.weighed(of_delivery)
            if each in of_delivery or each.cause in _STOPS
        ]

    def _of_project(self) -> list[Finding]:
        """Why the project sends no notification, or none yet."""
        if self.project is None:
            return []
        ineligible = ineligibility(self.project, self.now)
        if ineligible is not None:
            return [_INELIGIBLE[ineligible]()]
        if self.project.status in WAITING:
            return [not_exported(self.project)]
        if self.event is None:
            return [history_gone(self.project)]
        return self._ended_otherwise(self.event)

    def of_silence(self) -> list[Finding]:
        """Why the event was not sent to any endpoint, or not to the chosen one."""
        assert self.event is not None
        reason = self.event.reason
        if reason is not None and reason.value in list(Ineligible):
            return [_INELIGIBLE[Ineligible(reason.value)]()]
        if not self.known:
            return [no_endpoint()]
        return [not_sent_to(endpoint, self.event) for endpoint in self.known.values()]

    def _ended_otherwise(self, event: Event) -> list[Finding]:
        if event.type == BY_STATUS[ProjectStatus.FAILED].name:
            return [export_failed(event)]
        if event.type == BY_STATUS[ProjectStatus.CANCELLED].name:
            return [cancelled()]
        return []


_STOPS = (FindingCause.PROJECT_DELETED, FindingCause.PROJECT_ACCESS_EXPIRED)
_INELIGIBLE = {
    Ineligible.PROJECT_DELETED: project_deleted,
    Ineligible.PROJECT_ACCESS_EXPIRED: access_expired,
    Ineligible.STANDALONE_TRANSCRIPT: standalone_transcript,
}


def _with_unfinished(findings: list[Finding], project: Project | None) -> list[Finding]:
    """If the newest event was delivered, the unfinished project is probably the one meant."""
    if project is None or any(each.cause is FindingCause.NOT_EXPORTED_YET for each in findings):
        return findings
    arrived = all(each.cause is FindingCause.DELIVERED for each in findings)
    unfinished = not_exported(project)
    return [unfinished, *findings] if arrived else [*findings, unfinished]
