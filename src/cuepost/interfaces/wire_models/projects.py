"""Projects and their results."""

from uuid import UUID

from msgspec import UNSET, UnsetType

from cuepost.application.manage_projects import ProjectChange
from cuepost.application.project_result import ProjectResult as FetchedResult
from cuepost.application.project_result import ResultLink as FetchedLink
from cuepost.domain.instants import to_text
from cuepost.domain.project import Origin, ProjectKind, ProjectStatus, Stage
from cuepost.domain.project import Project as StoredProject
from cuepost.interfaces.wire_models.shapes import (
    Moment,
    Name,
    Request,
    ResponseModel,
    Time,
    given,
    moment,
    optional_instant,
)


class CreateProject(Request, frozen=True):
    name: Name
    kind: ProjectKind | UnsetType | None = UNSET
    access_expires_at: Time | UnsetType | None = UNSET


class UpdateProject(Request, frozen=True):
    """`accessExpiresAt: null` removes the end of the access window."""

    name: Name | UnsetType = UNSET
    access_expires_at: Time | UnsetType | None = UNSET

    def change(self) -> ProjectChange:
        return ProjectChange(
            name=given(self.name),
            sets_access=self.access_expires_at is not UNSET,
            access_expires_at=optional_instant(self.access_expires_at, "accessExpiresAt"),
        )


class Project(ResponseModel, frozen=True):
    id: UUID
    name: str
    kind: ProjectKind
    origin: Origin
    status: ProjectStatus
    stage: Stage
    access_expires_at: Moment | None
    created_at: Moment
    updated_at: Moment

    @classmethod
    def of(cls, project: StoredProject) -> "Project":
        return cls(
            id=project.id,
            name=project.name,
            kind=project.kind,
            origin=project.origin,
            status=project.status,
            stage=project.stage,
            access_expires_at=moment(project.access_expires_at),
            created_at=to_text(project.created_at),
            updated_at=to_text(project.updated_at),
        )


class ProjectList(ResponseModel, frozen=True):
    data: list[Project]
    next_cursor: str | None


class ResultLink(ResponseModel, frozen=True):
    kind: str
    name: str
    url: str
    content_type: str
    size_bytes: int
    expires_at: Moment

    @classmethod
    def of(cls, link: FetchedLink) -> "ResultLink":
        return cls(
            kind=link.kind,
            name=link.name,
            url=link.url,
            content_type=link.content_type,
            size_bytes=link.size_bytes,
            expires_at=to_text(link.expires_at),
        )


class ProjectResult(ResponseModel, frozen=True):
    """The last completed export, with links to its files.

    `status` and `stage` are the current ones of the project: another export may be running, or may
    have failed or been cancelled.
    """

    project_id: UUID
    status: ProjectStatus
    stage: Stage
    links: list[ResultLink]
    exported_at: Moment
    access_expires_at: Moment | None

    @classmethod
    def of(cls, result: FetchedResult) -> "ProjectResult":
        project = result.project
        return cls(
            project_id=project.id,
            status=project.status,
            stage=project.stage,
            links=[ResultLink.of(link) for link in result.links],
            exported_at=to_text(result.exported_at),
            access_expires_at=moment(project.access_expires_at),
        )
