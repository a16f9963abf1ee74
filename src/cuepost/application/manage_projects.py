"""Projects for their owner: create, read, change, export, cancel, delete."""

from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.milestone_batch import Milestone, MilestoneBatches
from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.delivery import CancelReason
from cuepost.domain.errors import NotFound
from cuepost.domain.project import (
    Origin,
    Project,
    ProjectKind,
    ProjectStatus,
    Stage,
    access_of_new,
)
from cuepost.domain.version import Expected, project_version, require_version
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """`name` None means unchanged; `access_expires_at` is used only if `sets_access`."""

    name: str | None = None
    sets_access: bool = False
    access_expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ManageProjects:
    clock: Clock
    ids: IdSource
    milestone_batches: MilestoneBatches
    audit: AuditTrail

    async def create(
        self,
        transaction: Transaction,
        caller: Caller,
        *,
        name: str,
        kind: ProjectKind,
        origin: Origin,
        access_expires_at: datetime | None,
    ) -> Project:
        caller.require(Scope.PROJECTS_WRITE)
        now = self.clock.now()
        project = Project(
            account_id=caller.account,
            id=self.ids(now),
            name=name,
            kind=kind,
            origin=origin,
            status=ProjectStatus.QUEUED,
            stage=Stage.PROCESSING,
            access_expires_at=access_of_new(access_expires_at, now),
            created_at=now,
            updated_at=now,
        )
        await transaction.projects.add(project)
        return project

    async def page(self, transaction: Transaction, caller: Caller, page: Page) -> list[Project]:
        caller.require(Scope.PROJECTS_READ)
        return await transaction.projects.page(caller.account, page)

    async def get(self, transaction: Transaction, caller: Caller, project_id: UUID) -> Project:
        caller.require(Scope.PROJECTS_READ)
        project = await transaction.projects.get(caller.account, project_id)
        if project is None:
            raise NotFound
        return project.require_present()

    async def change(
        self,
        transaction: Transaction,
        caller: Caller,
        project_id: UUID,
        wanted: ProjectChange,
        expected: Expected = None,
    ) -> Project:
        project = await self._locked(transaction, caller, project_id, expected)
        now = self.clock.now()
        if wanted.name is not None:
            project = replace(project, name=wanted.name)
        if wanted.sets_access:
            project = replace(project, access_expires_at=wanted.access_expires_at)
        project = replace(project, updated_at=now)
        await transaction.projects.save([project])
        if project.has_expired(now):
            await transaction.deliveries.stop_project(
                project.account_id, project.id, CancelReason.PROJECT_ACCESS_EXPIRED, now
            )
        return project

    async def export(
        self, transaction: Transaction, caller: Caller, project_id: UUID, expected: Expected = None
    ) -> Project:
        project = await self._locked(transaction, caller, project_id, expected)
        return await self._move(transaction, project, ProjectStatus.EXPORTING)

    async def cancel(
        self, transaction: Transaction, caller: Caller, project_id: UUID, expected: Expected = None
    ) -> Project:
        project = await self._locked(transaction, caller, project_id, expected)
        return await self._move(transaction, project, ProjectStatus.CANCELLED)

    async def delete(
        self, transaction: Transaction, caller: Caller, project_id: UUID, expected: Expected = None
    ) -> None:
        project = await self._locked(transaction, caller, project_id, expected)
        now = self.clock.now()
        await transaction.projects.save([project.deleted(now)])
        await transaction.projects.replace_artifacts({(project.account_id, project.id): ()})
        await transaction.deliveries.stop_project(
            project.account_id, project.id, CancelReason.PROJECT_DELETED, now
        )
        await self.audit.note(
            transaction, caller, Action.PROJECT_DELETED, project.account_id, project.id
        )

    async def _move(self, transaction: Transaction, project: Project, to: ProjectStatus) -> Project:
        project.moved(to, self.clock.now())
        batch = await self.milestone_batches.open(transaction, {project.id: project})
        batch.add(Milestone(report_id="", project_id=project.id, status=to))
        await batch.write(transaction)
        return batch.projects[project.id]

    async def _locked(
        self, transaction: Transaction, caller: Caller, project_id: UUID, expected: Expected
    ) -> Project:
        caller.require(Scope.PROJECTS_WRITE)
        found = await transaction.projects.lock([(caller.account, project_id)])
        if project_id not in found:
            raise NotFound
        project = found[project_id].require_present()
        require_version(expected, project_version(project))
        return project


@dataclass(frozen=True, slots=True)
class StopExpiredProjects:
    """Cancels the waiting deliveries of projects whose access window has ended."""

    perform: Perform
    clock: Clock

    async def step(self, limit: int) -> bool:
        """Return True if there may be more to do. No transaction spans two accounts."""
        now = self.clock.now()
        expired = await self.perform.read(
            lambda transaction: transaction.projects.expired(now, limit)
        )
        for project in expired:
            await self._stop(project, now)
        return len(expired) == limit

    async def _stop(self, project: Project, now: datetime) -> None:
        await self.perform.change(
            lambda transaction: transaction.deliveries.stop_project(
                project.account_id, project.id, CancelReason.PROJECT_ACCESS_EXPIRED, now
            )
        )
