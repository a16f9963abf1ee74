"""A batch of milestones: status changes, events and deliveries that are written together."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from cuepost.domain.access import AccountState
from cuepost.domain.artifact import Artifact, faults_of
from cuepost.domain.delivery import Delivery
from cuepost.domain.errors import AccountMoving, FieldError, IllegalTransition
from cuepost.domain.event import Event, SilenceReason, Subscriber, deliveries_of, event_body
from cuepost.domain.event_catalog import (
    BY_STATUS,
    ERROR_MESSAGE_LIMIT,
    EventType,
    milestone_data,
)
from cuepost.domain.immutable import immutable
from cuepost.domain.instants import to_millis
from cuepost.domain.project import (
    STAGE_OF,
    ProcessingError,
    Project,
    ProjectStatus,
    Stage,
    ineligibility,
)
from cuepost.ports.records import ProjectKey, ReportAnswer
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource

_DIGEST_BYTES = 16


@immutable
class Milestone:
    """`artifacts` of a completed milestone replace the project's files; None keeps them."""

    report_id: str
    project_id: UUID
    status: ProjectStatus
    stage: Stage | None = None
    error: ProcessingError | None = None
    artifacts: tuple[Artifact, ...] | None = None
    occurred_at: datetime | None = None


def contradictions_of(milestone: Milestone) -> list[FieldError]:
    errors: list[FieldError] = []
    stage, status = milestone.stage, milestone.status
    if stage is not None and STAGE_OF.get(status, stage) is not stage:
        message = f"The stage of status {status} is {STAGE_OF[status]}."
        errors.append(FieldError("stage", "stage_mismatch", message))
    if milestone.error is not None and status is not ProjectStatus.FAILED:
        errors.append(
            FieldError("error", "error_not_expected", "Only a failed milestone has an error.")
        )
    if milestone.artifacts and status is not ProjectStatus.COMPLETED:
        errors.append(
            FieldError(
                "artifacts", "artifacts_not_expected", "Only a completed milestone has artifacts."
            )
        )
    errors += [
        FieldError(f"artifacts[{place}].{fault.field}", fault.code, fault.message)
        for place, artifact in enumerate(milestone.artifacts or ())
        for fault in faults_of(artifact.name, artifact.key)
    ]
    return errors


def digest_of(milestone: Milestone) -> bytes:
    """Covers the meaning of the report: neither an implied stage nor text past the limit counts.

    Every part but the artifacts has a fixed place, and no text contains the separator.
    """
    error, artifacts, occurred_at = milestone.error, milestone.artifacts, milestone.occurred_at
    parts = [
        milestone.project_id.hex,
        milestone.status,
        "" if milestone.status in STAGE_OF else milestone.stage or "",
        "" if occurred_at is None else str(to_millis(occurred_at)),
        "" if error is None else error.code,
        "" if error is None else error.message[:ERROR_MESSAGE_LIMIT],
        "" if artifacts is None else str(len(artifacts)),
    ]
    for each in artifacts or ():
        parts += (each.kind, each.name, each.key, each.content_type, str(each.size_bytes))
    return hashlib.sha256("\0".join(parts).encode()).digest()[:_DIGEST_BYTES]


@dataclass(slots=True)
class MilestoneBatch:
    projects: dict[UUID, Project]
    subscribers: Mapping[UUID, Sequence[Subscriber]]
    not_live: Mapping[UUID, AccountState]
    now: datetime
    ids: IdSource
    base_url: str
    changed: dict[UUID, Project] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    deliveries: list[Delivery] = field(default_factory=list)
    artifacts: dict[ProjectKey, tuple[Artifact, ...]] = field(default_factory=dict)

    @property
    def moving(self) -> frozenset[UUID]:
        """Accounts for which nothing can be written now."""
        return frozenset(
            account_id
            for account_id, state in self.not_live.items()
            if state is not AccountState.MOVED
        )

    def add(self, milestone: Milestone) -> ReportAnswer:
        """Decide one milestone; nothing is stored before `write`."""
        project = self.projects.get(milestone.project_id)
        if project is None:
            return _refused(milestone, SilenceReason.PROJECT_NOT_FOUND)
        state = self.not_live.get(project.account_id)
        if state is AccountState.MOVED:
            return _refused(milestone, SilenceReason.ACCOUNT_MOVED)
        if state is not None:
            raise AccountMoving
        if project.deleted_at is not None:
            return _silent(milestone, SilenceReason.PROJECT_DELETED)
        try:
            moved = project.moved(milestone.status, self.now, milestone.stage)
        except IllegalTransition:
            return _refused(milestone, SilenceReason.ILLEGAL_TRANSITION)
        self.projects[moved.id] = self.changed[moved.id] = moved
        if moved.status is ProjectStatus.COMPLETED and milestone.artifacts is not None:
            self.artifacts[moved.account_id, moved.id] = milestone.artifacts
        event_type = BY_STATUS.get(moved.status)
        if event_type is None:
            return _silent(milestone, SilenceReason.NO_EVENT_FOR_STATUS)
        event = self._announce(moved, event_type, milestone)
        notified = event.reason is None
        return ReportAnswer(milestone.report_id, True, event.id, notified, event.reason)

    async def write(self, transaction: Transaction) -> None:
        await transaction.projects.save_status(list(self.changed.values()))
        await transaction.events.add(self.events)
        await transaction.deliveries.add(self.deliveries)
        if self.artifacts:
            await transaction.projects.replace_artifacts(self.artifacts)

    def _announce(self, project: Project, event_type: EventType, milestone: Milestone) -> Event:
        event_id, now = self.ids(self.now), self.now
        data = milestone_data(project, milestone.error, self.base_url)
        event = Event(
            project.account_id,
            event_id,
            event_type.name,
            now,
            project.id,
            milestone.occurred_at or now,
            event_body(event_id, event_type.name, now, data),
        )
        ineligible = ineligibility(project, now)
        if ineligible is not None:
            event = event.silenced(SilenceReason(ineligible))
        else:
            made = deliveries_of(event, self.subscribers.get(event.account_id, ()), self.ids)
            self.deliveries += made
            stopped = [each.reason for each in made if each.reason is not None]
            if not made:
                event = event.silenced(SilenceReason.NOT_SUBSCRIBED)
            elif len(stopped) == len(made):
                # Access belongs to the account, so it is closed for all its endpoints or for none.
                event = event.silenced(SilenceReason(stopped[0]))
        self.events.append(event)
        return event


@dataclass(frozen=True, slots=True)
class MilestoneBatches:
    """Opens a batch inside a transaction that has locked the projects."""

    clock: Clock
    ids: IdSource
    base_url: str

    async def open(self, transaction: Transaction, projects: dict[UUID, Project]) -> MilestoneBatch:
        accounts = {project.account_id for project in projects.values()}
        subscribers = await transaction.endpoints.subscribers(accounts)
        not_live = await transaction.accounts.not_live(accounts)
        return MilestoneBatch(
            projects, subscribers, not_live, self.clock.now(), self.ids, self.base_url
        )


def _refused(milestone: Milestone, reason: SilenceReason) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, False, None, False, reason)


def _silent(milestone: Milestone, reason: SilenceReason) -> ReportAnswer:
    return ReportAnswer(milestone.report_id, True, None, False, reason)
