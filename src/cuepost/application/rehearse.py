"""Changes the status of a project by hand, as the pipeline would, to try out a receiver."""

from dataclasses import dataclass
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.milestone_batch import Milestone, MilestoneBatches
from cuepost.domain.access import Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.errors import NotFound, ProjectNotRehearsable
from cuepost.domain.project import MOVES, Origin, ProcessingError, Project, ProjectStatus
from cuepost.ports.store import Transaction

_S = ProjectStatus
# The shortest path to a completed export.
PATH = (_S.QUEUED, _S.PROCESSING, _S.READY, _S.EXPORTING, _S.COMPLETED)
GOALS = (_S.READY, _S.COMPLETED, _S.FAILED, _S.CANCELLED)
REHEARSED = ProcessingError("rehearsal", "This failure was reported by hand, in the settings.")


@dataclass(frozen=True, slots=True)
class Rehearse:
    """Only for projects that were created in the pages; the pipeline reports for all others."""

    milestone_batches: MilestoneBatches
    audit: AuditTrail

    async def advance(
        self, transaction: Transaction, caller: Caller, project_id: UUID, to: ProjectStatus
    ) -> Project:
        """Every step on the path is written, each with its event."""
        caller.require(Scope.PROJECTS_WRITE)
        found = await transaction.projects.lock([(caller.account, project_id)])
        if project_id not in found:
            raise NotFound
        project = found[project_id].require_present()
        if project.origin is not Origin.APP:
            raise ProjectNotRehearsable
        batch = await self.milestone_batches.open(transaction, {project_id: project})
        for step in path_to(project.status, to):
            batch.projects[project_id].moved(step, batch.now)
            error = REHEARSED if step is _S.FAILED else None
            batch.add(Milestone("", project_id, step, error=error))
        await batch.write(transaction)
        await self.audit.note(
            transaction, caller, Action.PROJECT_REHEARSED, caller.account, project_id, status=to
        )
        return batch.projects[project_id]


def path_to(status: ProjectStatus, goal: ProjectStatus) -> tuple[ProjectStatus, ...]:
    """The statuses up to the goal, or only the goal if it is not further along PATH."""
    if status in (_S.COMPLETED, _S.FAILED, _S.CANCELLED) and goal is _S.COMPLETED:
        return _S.EXPORTING, goal
    if status in PATH and goal in PATH and PATH.index(goal) > PATH.index(status):
        return PATH[PATH.index(status) + 1 : PATH.index(goal) + 1]
    return (goal,)


def goals_of(project: Project) -> tuple[ProjectStatus, ...]:
    """The statuses that can be reached by hand from the current one."""
    if project.origin is not Origin.APP:
        return ()
    return tuple(goal for goal in GOALS if _can_reach(project.status, goal))


def _can_reach(status: ProjectStatus, goal: ProjectStatus) -> bool:
    for step in path_to(status, goal):
        if step not in MOVES[status]:
            return False
        status = step
    return True
