"""Projects and the files their exports made."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.encoding import ENCODINGS
from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.session import Session
from cuepost.adapters.storage.statements import Among, Prepared
from cuepost.adapters.storage.tables import accounts, artifacts, projects
from cuepost.adapters.storage.tables.owned import STAGE, STATUS
from cuepost.domain.artifact import Artifact
from cuepost.domain.project import Project
from cuepost.ports.records import Page, ProjectKey

_MUTABLE = ("name", "status", "stage", "access_expires_at", "updated_at", "deleted_at")
_KEY = ("account_id", "id")
_MOVED = ("status", "stage", "updated_at", "exported_at")
_COLUMNS = tuple(column for column in projects.c if column is not projects.c.access_ended_at)
_OF_ACCOUNT = projects.c.account_id == sa.bindparam("account_id")

_ONE = Prepared(
    sa.select(*_COLUMNS).where(_OF_ACCOUNT, projects.c.id == sa.bindparam("project_id"))
)
_PAGE = paging.prepared(
    sa.select(*_COLUMNS).where(_OF_ACCOUNT, projects.c.deleted_at.is_(None)), projects.c.id
)
_OWNERS = Prepared(
    sa.select(projects.c.id, projects.c.account_id).where(Among(projects.c.id, "project_ids"))
)
# In the order of ids, so that two batches cannot wait for one another in a circle. The number of
# the account is needed next.
_NUMBERED = (
    sa.select(*_COLUMNS, accounts.c.number)
    .select_from(projects.outerjoin(accounts, accounts.c.id == projects.c.account_id))
    .order_by(projects.c.id)
)
_LOCKED_OWN = Prepared(
    lambda among: _NUMBERED.where(
        among((projects.c.account_id, projects.c.id), "accounts", "projects")
    ).with_for_update(of=projects)
)
_ANY = _NUMBERED.where(Among(projects.c.id, "projects"))
_LOCKED_ANY = Prepared(_ANY.with_for_update(of=projects))
_UNLOCKED = Prepared(_ANY.with_for_update(of=projects, skip_locked=True))
_EXPIRED = Prepared(
    sa.select(*_COLUMNS)
    .where(
        projects.c.access_expires_at <= sa.bindparam("now"),
        projects.c.access_ended_at.is_(None),
        projects.c.deleted_at.is_(None),
    )
    .order_by(projects.c.access_expires_at)
    .limit(sa.bindparam("most", type_=sa.Integer))
    .offset(sa.literal_column("0"))
)


class ProjectRecords:
    def __init__(self, session: Session) -> None:
        self._session = session

    async def add(self, project: Project) -> None:
        await self._session.insert(projects, [asdict(project)])

    async def get(self, account_id: UUID, project_id: UUID) -> Project | None:
        rows = await self._session.fetch(_ONE, account_id=account_id, project_id=project_id)
        return _project(rows[0]) if rows else None

    async def page(self, account_id: UUID, page: Page) -> list[Project]:
        rows = await self._session.unhurried.fetch(
            _PAGE, account_id=account_id, **paging.bounds(page)
        )
        return [_project(row) for row in rows]

    async def owners(self, project_ids: Sequence[UUID]) -> Mapping[UUID, UUID]:
        rows = await self._session.fetch(_OWNERS, project_ids=project_ids)
        return dict(rows)

    async def lock(self, keys: Collection[ProjectKey]) -> dict[UUID, Project]:
        rows = await self._session.fetch(
            _LOCKED_OWN,
            accounts=[account_id for account_id, _ in keys],
            projects=[project_id for _, project_id in keys],
        )
        return self._numbered(rows)

    async def lock_any(
        self, project_ids: Collection[UUID], *, skip_locked: bool
    ) -> dict[UUID, Project]:
        statement = _UNLOCKED if skip_locked else _LOCKED_ANY
        return self._numbered(await self._session.fetch(statement, projects=list(project_ids)))

    def _numbered(self, rows: Sequence[Any]) -> dict[UUID, Project]:
        """The numbers of their accounts are remembered."""
        locked = {}
        for *facts, number in rows:
            project = locked[facts[1]] = _project(facts)
            if number is not None:
                self._session.numbers.accounts[project.account_id] = number
        return locked

    async def save(self, changed: Sequence[Project]) -> None:
        await self._session.update(
            projects,
            ("account_id", "id"),
            [
                {"account_id": project.account_id, "id": project.id, "access_ended_at": None}
                | {name: getattr(project, name) for name in _MUTABLE}
                for project in changed
            ],
        )

    async def save_moves(self, moved: Sequence[Project]) -> None:
        # Not one of these columns is in an index, and there is one such update for each milestone.
        encoding = ENCODINGS[self._session.dialect]
        to_id, to_instant = encoding.id, encoding.instant
        rows = [
            (
                STATUS.codes[each.status],
                STAGE.codes[each.stage],
                to_instant(each.updated_at),
                encoding.instant_or_none(each.exported_at),
                to_id(each.account_id),
                to_id(each.id),
            )
            for each in moved
        ]
        await self._session.update_encoded(projects, _KEY, _MOVED, rows)

    async def expired(self, now: datetime, limit: int) -> list[Project]:
        rows = await self._session.fetch(_EXPIRED, now=now, most=limit)
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

    async def files_to_erase(self, account_id: UUID, limit: int) -> dict[UUID, list[str]]:
        mine, theirs = artifacts, artifacts.alias("theirs")
        is_shared = sa.exists().where(
            theirs.c.key == mine.c.key, theirs.c.account_id != mine.c.account_id
        )
        rows = await self._session.unhurried.all(
            sa.select(mine.c.project_id, mine.c.key, is_shared.label("is_shared"))
            .where(mine.c.account_id == account_id)
            .order_by(mine.c.project_id)
            .limit(limit)
        )
        found: dict[UUID, list[str]] = {row.project_id: [] for row in rows}
        for row in rows:
            if not row.is_shared:
                found[row.project_id].append(row.key)
        return found

    async def replace_artifacts(self, files: Mapping[ProjectKey, Sequence[Artifact]]) -> None:
        await self._session.delete(
            artifacts,
            ("account_id", "project_id"),
            [
                {"account_id": account_id, "project_id": project_id}
                for account_id, project_id in files
            ],
        )
        await self._session.insert(
            artifacts,
            [
                {"account_id": account_id, "project_id": project_id, "position": place}
                | asdict(file)
                for (account_id, project_id), each in files.items()
                for place, file in enumerate(each)
            ],
        )


def _project(row: Sequence[Any]) -> Project:
    return Project(*row)
