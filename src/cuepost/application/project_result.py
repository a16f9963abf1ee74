"""The authenticated result address: what a finished export left, for those who may have it."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.errors import NotFound
from cuepost.domain.project import Project
from cuepost.ports.runtime import Clock
from cuepost.ports.store import Transaction


@dataclass(frozen=True, slots=True)
class ResultLink:
    kind: str
    name: str
    url: str
    content_type: str
    size_bytes: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectResult:
    project: Project
    links: tuple[ResultLink, ...]


@dataclass(frozen=True, slots=True)
class FetchResult:
    clock: Clock

    async def get(
        self, transaction: Transaction, caller: Caller, project_id: UUID
    ) -> ProjectResult:
        caller.require(Scope.PROJECTS_READ)
        project = await transaction.projects.get(caller.account, project_id)
        if project is None:
            raise NotFound
        project.require_result(self.clock.now())
        return ProjectResult(project, links=())
