"""A video project, the transitions between its statuses, and whether it sends notifications."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuepost.domain.errors import (
    FieldError,
    IllegalTransition,
    Invalid,
    ProjectAccessExpired,
    ProjectDeleted,
    ResultNotReady,
)
from cuepost.domain.immutable import immutable


class ProjectStatus(StrEnum):
    QUEUED = "queued"
    PROCESSING = "processing"
    READY = "ready"
    EXPORTING = "exporting"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"


class Stage(StrEnum):
    PROCESSING = "processing"
    EXPORT = "export"


class ProjectKind(StrEnum):
    VIDEO = "video"
    TRANSCRIPT = "transcript"


class Origin(StrEnum):
    APP = "app"
    API = "api"
    MCP = "mcp"


class Ineligible(StrEnum):
    STANDALONE_TRANSCRIPT = "standalone_transcript"
    PROJECT_DELETED = "project_deleted"
    PROJECT_ACCESS_EXPIRED = "project_access_expired"


_S = ProjectStatus
MOVES: Mapping[ProjectStatus, frozenset[ProjectStatus]] = {
    _S.QUEUED: frozenset({_S.PROCESSING, _S.FAILED, _S.CANCELLED}),
    _S.PROCESSING: frozenset({_S.READY, _S.EXPORTING, _S.FAILED, _S.CANCELLED}),
    _S.READY: frozenset({_S.EXPORTING, _S.CANCELLED}),
    _S.EXPORTING: frozenset({_S.COMPLETED, _S.FAILED, _S.CANCELLED}),
    _S.COMPLETED: frozenset({_S.EXPORTING}),
    _S.FAILED: frozenset({_S.PROCESSING, _S.EXPORTING}),
    _S.CANCELLED: frozenset({_S.PROCESSING, _S.EXPORTING}),
}

# Failed and cancelled are missing, because they keep the project's stage.
STAGE_OF: Mapping[ProjectStatus, Stage] = {
    _S.QUEUED: Stage.PROCESSING,
    _S.PROCESSING: Stage.PROCESSING,
    _S.READY: Stage.PROCESSING,
    _S.EXPORTING: Stage.EXPORT,
    _S.COMPLETED: Stage.EXPORT,
}


@dataclass(frozen=True, slots=True)
class ProcessingError:
    """Why a project failed; the message contains no caption text."""

    code: str
    message: str


@immutable
class Project:
    account_id: UUID
    id: UUID
    name: str
    kind: ProjectKind
    origin: Origin
    status: ProjectStatus
    stage: Stage
    access_expires_at: datetime | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    exported_at: datetime | None = None

    def moved(self, to: ProjectStatus, now: datetime, stage: Stage | None = None) -> "Project":
        """The project in its new status; `stage` is used only if the status does not imply one."""
        if to not in MOVES[self.status]:
            raise IllegalTransition(
                f"A project that is {self.status} cannot become {to}.", currentStatus=self.status
            )
        # Not `replace`, which takes ten times as long; this runs for every milestone.
        return Project(
            self.account_id,
            self.id,
            self.name,
            self.kind,
            self.origin,
            to,
            STAGE_OF.get(to) or stage or self.stage,
            self.access_expires_at,
            self.created_at,
            now,
            self.deleted_at,
            now if to is ProjectStatus.COMPLETED else self.exported_at,
        )

    def deleted(self, now: datetime) -> "Project":
        """A tombstone: requests for it are answered with 'gone', and the name is removed."""
        return replace(self, name="", deleted_at=now, updated_at=now)

    def has_expired(self, now: datetime) -> bool:
        return self.access_expires_at is not None and self.access_expires_at <= now

    def access_until(self, latest: datetime) -> datetime:
        """`latest`, or the end of the access window if that is earlier."""
        end = self.access_expires_at
        return latest if end is None else min(latest, end)

    def require_present(self) -> "Project":
        if self.deleted_at is not None:
            raise ProjectDeleted
        return self

    def require_access(self, now: datetime) -> None:
        self.require_present()
        if self.has_expired(now):
            raise ProjectAccessExpired

    def require_result(self, now: datetime) -> datetime:
        """The time at which the export that made the result was completed."""
        self.require_access(now)
        if self.exported_at is None:
            raise ResultNotReady(
                f"The project is {self.status}; no export of it has completed yet.",
                projectStatus=self.status,
            )
        return self.exported_at


def access_of_new(until: datetime | None, now: datetime) -> datetime | None:
    """The access window of a new project, which must not have ended."""
    if until is not None and until <= now:
        raise Invalid(
            FieldError("accessExpiresAt", "expiry_in_the_past", "Choose a time in the future.")
        )
    return until


def ineligibility(project: Project, now: datetime) -> Ineligible | None:
    """The reason why this project's milestones are not sent now, or None."""
    if project.deleted_at is not None:
        return Ineligible.PROJECT_DELETED
    if project.kind is ProjectKind.TRANSCRIPT:
        return Ineligible.STANDALONE_TRANSCRIPT
    if project.has_expired(now):
        return Ineligible.PROJECT_ACCESS_EXPIRED
    return None
