"""The result of a project: links to the files of its last completed export."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.access import Caller, Scope
from cuepost.domain.artifact import Artifact
from cuepost.domain.errors import NotFound
from cuepost.domain.project import Project
from cuepost.ports.media import MediaLinks
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock


@dataclass(frozen=True, slots=True)
class ResultLink:
    """`url` gives access to the file without a key, so it must not be logged."""

    kind: str
    name: str
    url: str
    content_type: str
    size_bytes: int
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class ProjectResult:
    project: Project
    exported_at: datetime
    links: tuple[ResultLink, ...]


@dataclass(frozen=True, slots=True)
class FetchResult:
    clock: Clock
    media: MediaLinks
    link_ttl: timedelta

    async def get(
        self, transaction: Transaction, caller: Caller, project_id: UUID
    ) -> ProjectResult:
        """Changes nothing, and does not extend the access window."""
        caller.require(Scope.PROJECTS_READ)
        project = await transaction.projects.get(caller.account, project_id)
        if project is None:
            raise NotFound
        now = self.clock.now()
        exported_at = project.require_result(now)
        files = await transaction.projects.artifacts(project.account_id, project.id)
        links = [await self._link(project, file, now) for file in files]
        return ProjectResult(project, exported_at, tuple(links))

    async def _link(self, project: Project, file: Artifact, now: datetime) -> ResultLink:
        expires_at = project.access_until(now + self.link_ttl)
        url = await self.media.link(project, file, now, expires_at)
        return ResultLink(file.kind, file.name, url, file.content_type, file.size_bytes, expires_at)
