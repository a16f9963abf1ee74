"""Tools for projects and their results."""

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from cuepost.application.manage_projects import ProjectChange
from cuepost.domain.access import Scope
from cuepost.domain.project import Origin, ProjectKind
from cuepost.interfaces.mcp.kinds import OneProject, OneProjectConfirmed, Paged, ProjectId
from cuepost.interfaces.mcp.shapes import Done
from cuepost.interfaces.mcp.tool import Arguments, Tool, ToolContext
from cuepost.interfaces.wire_models.paging import cut
from cuepost.interfaces.wire_models.projects import Project, ProjectList, ProjectResult
from cuepost.interfaces.wire_models.shapes import Name, Time, optional_instant

ProjectName = Annotated[Name, Meta(description="One line of text.")]
NewProjectKind = Annotated[
    ProjectKind, Meta(description="A transcript never causes notifications.")
]
AccessEnd = Annotated[Time, Meta(description="End of the access window; default: none.")]
NewAccessEnd = Annotated[Time | None, Meta(description="End of the access window; null for none.")]


class CreateProject(Arguments, frozen=True):
    name: ProjectName
    kind: NewProjectKind = ProjectKind.VIDEO
    access_expires_at: AccessEnd | None = None


class UpdateProject(Arguments, frozen=True):
    """Omitted fields stay unchanged."""

    project_id: ProjectId
    name: ProjectName | None = None
    access_expires_at: NewAccessEnd | UnsetType = UNSET


async def create(work: ToolContext, wanted: CreateProject) -> Project:
    made = await work.service.projects.create(
        work.transaction,
        work.caller,
        name=wanted.name,
        kind=wanted.kind,
        origin=Origin.MCP,
        access_expires_at=optional_instant(wanted.access_expires_at, "access_expires_at"),
    )
    return Project.of(made)


async def page(work: ToolContext, wanted: Paged) -> ProjectList:
    found = await work.service.projects.page(work.transaction, work.caller, wanted.page())
    return ProjectList(*cut([Project.of(each) for each in found], wanted.limit))


async def get(work: ToolContext, wanted: OneProject) -> Project:
    found = await work.service.projects.get(work.transaction, work.caller, wanted.project_id)
    return Project.of(found)


async def update(work: ToolContext, wanted: UpdateProject) -> Project:
    change = ProjectChange(
        name=wanted.name,
        sets_access=wanted.access_expires_at is not UNSET,
        access_expires_at=optional_instant(wanted.access_expires_at, "access_expires_at"),
    )
    changed = await work.service.projects.change(
        work.transaction, work.caller, wanted.project_id, change
    )
    return Project.of(changed)


async def export(work: ToolContext, wanted: OneProject) -> Project:
    moved = await work.service.projects.export(work.transaction, work.caller, wanted.project_id)
    return Project.of(moved)


async def cancel(work: ToolContext, wanted: OneProjectConfirmed) -> Project:
    work.service.confirm_host.of_service(wanted.confirm_host)
    moved = await work.service.projects.cancel(work.transaction, work.caller, wanted.project_id)
    return Project.of(moved)


async def delete(work: ToolContext, wanted: OneProjectConfirmed) -> Done:
    work.service.confirm_host.of_service(wanted.confirm_host)
    await work.service.projects.delete(work.transaction, work.caller, wanted.project_id)
    return Done(True, wanted.project_id)


async def result(work: ToolContext, wanted: OneProject) -> ProjectResult:
    found = await work.service.results.get(work.transaction, work.caller, wanted.project_id)
    return ProjectResult.of(found)


TOOLS = (
    Tool(
        name="projects_create",
        title="Create a project",
        description="Create a video project, or a standalone transcript, which never causes "
        "notifications. Subscribed endpoints are notified of its milestones.",
        scope=Scope.PROJECTS_WRITE,
        arguments=CreateProject,
        answer=Project,
        run=create,
    ),
    Tool(
        name="projects_list",
        title="List projects",
        description="List the account's projects, newest first.",
        scope=Scope.PROJECTS_READ,
        arguments=Paged,
        answer=ProjectList,
        reads=True,
        run=page,
    ),
    Tool(
        name="projects_get",
        title="Get a project",
        description="Get a project with its status and stage.",
        scope=Scope.PROJECTS_READ,
        arguments=OneProject,
        answer=Project,
        reads=True,
        run=get,
    ),
    Tool(
        name="projects_update",
        title="Change a project",
        description="Rename a project or change the end of its access window. When the window "
        "ends, pending deliveries of the project are cancelled.",
        scope=Scope.PROJECTS_WRITE,
        arguments=UpdateProject,
        answer=Project,
        idempotent=True,
        run=update,
    ),
    Tool(
        name="projects_export",
        title="Start an export",
        description="Start the export of a project that is ready, completed, failed or cancelled. "
        "It ends with the event project.completed or project.failed; until it completes, the "
        "files of the last completed export stay available.",
        scope=Scope.PROJECTS_WRITE,
        arguments=OneProject,
        answer=Project,
        reaches_out=True,
        run=export,
    ),
    Tool(
        name="projects_cancel",
        title="Cancel a project",
        description="Cancel a project that has not ended. It can be exported again later.",
        scope=Scope.PROJECTS_WRITE,
        arguments=OneProjectConfirmed,
        answer=Project,
        destructive=True,
        reaches_out=True,
        run=cancel,
    ),
    Tool(
        name="projects_delete",
        title="Delete a project",
        description="Permanently delete a project and its results. Its pending deliveries are "
        "cancelled.",
        scope=Scope.PROJECTS_WRITE,
        arguments=OneProjectConfirmed,
        answer=Done,
        destructive=True,
        run=delete,
    ),
    Tool(
        name="projects_get_result",
        title="Get links to the last completed export",
        description="Get new download links to the files of the project's last completed export "
        "(exportedAt), also while another export runs or after it failed. Links expire; call "
        "again for new ones.",
        scope=Scope.PROJECTS_READ,
        arguments=OneProject,
        answer=ProjectResult,
        reads=True,
        run=result,
    ),
)
