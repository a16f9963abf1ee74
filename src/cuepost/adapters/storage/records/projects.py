"""Projects and the files their exports made."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.records.paging import newest_first
from cuepost.adapters.storage.session import Session, first
from cuepost.adapters.storage.tables import artifacts, deliveries, projects
from cuepost.domain.project import (
    Artifact,
    Origin,
    Project,
    ProjectKind,
    ProjectStatus,
    Stage,
)
from cuepost.ports.records import Page

_MUTABLE = ("name", "status", "stage", "access_expires_at", "updated_at", "deleted_at")


class ProjectRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, project: Project) -> None:
        await self._session.insert(projects, [asdict(project)])

    async def get(self, account_id: UUID, project_id: UUID) -> Project | None:
        row = await first(
            self._session,
            sa.select(projects).where(
                projects.c.account_id == account_id, projects.c.id == project_id
            ),
        )
        return _project(row) if row else None

    async def page(self, account_id: UUID, page: Page) -> list[Project]:
        statement = sa.select(projects).where(
            projects.c.account_id == account_id, projects.c.deleted_at.is_(None)
        )
        rows = await self._session.all(newest_first(statement, projects.c.id, page))
        return [_project(row) for row in rows]

    async def owners(self, project_ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        rows = await self._session.all(
            sa.select(projects.c.id, projects.c.account_id).where(projects.c.id.in_(project_ids))
        )
        return {row.id: row.account_id for row in rows}

    async def lock(self, account_id: UUID, project_ids: Sequence[UUID]) -> dict[UUID, Project]:
        # In the order of ids, so that two batches cannot wait for one another in a circle.
        rows = await self._session.all(
            sa.select(projects)
            .where(projects.c.account_id == account_id, projects.c.id.in_(project_ids))
            .order_by(projects.c.id)
            .with_for_update()
        )
        return {row.id: _project(row) for row in rows}

    async def save(self, changed: Sequence[Project]) -> None:
        await self._session.update(
            projects,
            ("account_id", "id"),
            [
                {"account_id": project.account_id, "id": project.id}
                | {name: getattr(project, name) for name in _MUTABLE}
                for project in changed
            ],
        )

    async def expired(self, now: datetime, limit: int) -> list[Project]:
        waiting = sa.exists().where(
            deliveries.c.account_id == projects.c.account_id,
            deliveries.c.project_id == projects.c.id,
            deliveries.c.final_status.is_(None),
        )
        rows = await self._session.all(
            sa.select(projects)
            .where(projects.c.access_expires_at <= now, projects.c.deleted_at.is_(None), waiting)
            .limit(limit)
        )
        return [_project(row) for row in rows]

    async def artifacts(self, account_id: UUID, project_id: UUID) -> list[Artifact]:
        rows = await self._session.all(
            sa.select(artifacts)
            .where(artifacts.c.account_id == account_id, artifacts.c.project_id == project_id)
            .order_by(artifacts.c.position)
        )
        return [
            Artifact(row.kind, row.name, row.key, row.content_type, row.size_bytes) for row in rows
        ]

    async def replace_artifacts(
        self, account_id: UUID, files: Mapping[UUID, Sequence[Artifact]]
    ) -> None:
        if not files:
            return
        await self._session.run(
            sa.delete(artifacts).where(
                artifacts.c.account_id == account_id, artifacts.c.project_id.in_(list(files))
            )
        )
        await self._session.insert(
            artifacts,
            [
                {"account_id": account_id, "project_id": project_id, "position": place}
                | asdict(file)
                for project_id, each in files.items()
                for place, file in enumerate(each)
            ],
        )


def _project(row: sa.Row[Any]) -> Project:
    return Project(
        account_id=row.account_id,
        id=row.id,
        name=row.name,
        kind=ProjectKind(row.kind),
        origin=Origin(row.origin),
        status=ProjectStatus(row.status),
        stage=Stage(row.stage),
        access_expires_at=row.access_expires_at,
        created_at=row.created_at,
        updated_at=row.updated_at,
        deleted_at=row.deleted_at,
    )
