"""Which projects send notifications, and why the others do not."""

from datetime import datetime
from enum import StrEnum

from cuepost.domain.project import Project, ProjectKind


class Ineligible(StrEnum):
    STANDALONE_TRANSCRIPT = "standalone_transcript"
    PROJECT_DELETED = "project_deleted"
    PROJECT_ACCESS_EXPIRED = "project_access_expired"


def ineligibility(project: Project, now: datetime) -> Ineligible | None:
    """The reason why this project's milestones are not sent now, or None."""
    if project.deleted_at is not None:
        return Ineligible.PROJECT_DELETED
    if project.kind is ProjectKind.TRANSCRIPT:
        return Ineligible.STANDALONE_TRANSCRIPT
    if project.has_expired(now):
        return Ineligible.PROJECT_ACCESS_EXPIRED
    return None
