"""Calls for projects and their results."""

from uuid import UUID

from cuepost.application.service import Service
from cuepost.domain.access import Scope
from cuepost.domain.errors import (
    IllegalTransition,
    MediaUnavailable,
    ProjectAccessExpired,
    ProjectDeleted,
    ResultNotReady,
)
from cuepost.domain.project import Origin, ProjectKind
from cuepost.domain.project import Project as StoredProject
from cuepost.domain.version import project_version
from cuepost.interfaces.rest.answers import Reply
from cuepost.interfaces.rest.operation import Call, NoInput, Operation
from cuepost.interfaces.rest.running import changing, reading
from cuepost.interfaces.wire_models.paging import PageQuery, cut
from cuepost.interfaces.wire_models.projects import (
    CreateProject,
    Project,
    ProjectList,
    ProjectResult,
    UpdateProject,
)
from cuepost.interfaces.wire_models.shapes import given, optional_instant
from cuepost.ports.store import Transaction

PROJECTS = "/v1/projects"
PROJECT = "/v1/projects/{projectId}"
_TAG = "Projects"

_Plain = Call[NoInput, NoInput]


def _id(call: _Plain | Call[UpdateProject, NoInput]) -> UUID:
    return call.ids["projectId"]


def _reply(project: StoredProject, location: str | None = None) -> Reply:
    return Reply(Project.of(project), location, project_version(project))


async def create(
    service: Service, transaction: Transaction, call: Call[CreateProject, NoInput]
) -> Reply:
    project = await service.projects.create(
        transaction,
        call.caller,
        name=call.body.name,
        kind=given(call.body.kind) or ProjectKind.VIDEO,
        origin=Origin.API,
        access_expires_at=optional_instant(call.body.access_expires_at, "accessExpiresAt"),
    )
    return _reply(project, f"{PROJECTS}/{project.id}")


async def page(service: Service, transaction: Transaction, call: Call[NoInput, PageQuery]) -> Reply:
    projects = await service.projects.page(transaction, call.caller, call.query.page())
    return Reply(ProjectList(*cut([Project.of(each) for each in projects], call.query.limit)))


async def get(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    return _reply(await service.projects.get(transaction, call.caller, _id(call)))


async def update(
    service: Service, transaction: Transaction, call: Call[UpdateProject, NoInput]
) -> Reply:
    wanted = call.body.change()
    project = await service.projects.change(
        transaction, call.caller, _id(call), wanted, call.expected
    )
    return _reply(project)


async def delete(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    await service.projects.delete(transaction, call.caller, _id(call), call.expected)
    return Reply()


async def export(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    moved = await service.projects.export(transaction, call.caller, _id(call), call.expected)
    return _reply(moved)


async def cancel(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    moved = await service.projects.cancel(transaction, call.caller, _id(call), call.expected)
    return _reply(moved)


async def result(service: Service, transaction: Transaction, call: _Plain) -> Reply:
    return Reply(ProjectResult.of(await service.results.get(transaction, call.caller, _id(call))))


OPERATIONS = (
    Operation(
        method="POST",
        path=PROJECTS,
        name="createProject",
        tag=_TAG,
        summary="Create a project",
        description="The origin is `api`. A standalone transcript never causes notifications.",
        scope=Scope.PROJECTS_WRITE,
        body=CreateProject,
        status=201,
        answer=Project,
        versioned=True,
        run=changing(create),
    ),
    Operation(
        method="GET",
        path=PROJECTS,
        name="listProjects",
        tag=_TAG,
        summary="List projects",
        scope=Scope.PROJECTS_READ,
        query=PageQuery,
        answer=ProjectList,
        run=reading(page),
    ),
    Operation(
        method="GET",
        path=PROJECT,
        name="getProject",
        tag=_TAG,
        summary="Get a project",
        scope=Scope.PROJECTS_READ,
        answer=Project,
        refusals=(ProjectDeleted,),
        versioned=True,
        run=reading(get),
    ),
    Operation(
        method="PATCH",
        path=PROJECT,
        name="updateProject",
        tag=_TAG,
        summary="Change a project",
        description="Ending the access window cancels pending deliveries of the project.",
        scope=Scope.PROJECTS_WRITE,
        body=UpdateProject,
        answer=Project,
        refusals=(ProjectDeleted,),
        versioned=True,
        run=changing(update),
    ),
    Operation(
        method="DELETE",
        path=PROJECT,
        name="deleteProject",
        tag=_TAG,
        summary="Delete a project",
        description="Pending deliveries of the project are cancelled.",
        scope=Scope.PROJECTS_WRITE,
        status=204,
        answer=None,
        refusals=(ProjectDeleted,),
        versioned=True,
        run=changing(delete),
    ),
    Operation(
        method="POST",
        path=f"{PROJECT}/export",
        name="exportProject",
        tag=_TAG,
        summary="Start an export",
        description=(
            "The project has to be processing, ready, completed, failed or cancelled. The files of "
            "the last completed export stay its result until this export completes."
        ),
        scope=Scope.PROJECTS_WRITE,
        answer=Project,
        refusals=(IllegalTransition, ProjectDeleted),
        versioned=True,
        run=changing(export),
    ),
    Operation(
        method="POST",
        path=f"{PROJECT}/cancel",
        name="cancelProject",
        tag=_TAG,
        summary="Cancel a project",
        description="The project can be exported again later; an existing result is kept.",
        scope=Scope.PROJECTS_WRITE,
        answer=Project,
        refusals=(IllegalTransition, ProjectDeleted),
        versioned=True,
        run=changing(cancel),
    ),
    Operation(
        method="GET",
        path=f"{PROJECT}/result",
        name="getProjectResult",
        tag=_TAG,
        summary="Get links to the last completed export",
        description=(
            "This is the `resultUrl` of a `project.completed` event. It returns the files of the "
            "last completed export (`exportedAt`) until another export completes, also while one "
            "is running, has failed or was cancelled. Each call creates new links. A link is valid "
            "until its `expiresAt`, never beyond the access window of the project, and needs no "
            "key: anyone with the link can download the file. `Range` and `If-Range` resume an "
            "interrupted download."
        ),
        scope=Scope.PROJECTS_READ,
        answer=ProjectResult,
        refusals=(ResultNotReady, ProjectDeleted, ProjectAccessExpired, MediaUnavailable),
        run=reading(result),
    ),
)
