"""Projects and the files of their exports."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from cuepost.adapters.quick_ids import ID_BYTES
from cuepost.adapters.storage.records import paging
from cuepost.adapters.storage.records.paging import LAST
from cuepost.adapters.storage.row_writes import updated
from cuepost.adapters.storage.session import Records
from cuepost.adapters.storage.sql import Sql
from cuepost.domain.account_reference import search_key
from cuepost.domain.artifact import Artifact
from cuepost.domain.project import Project
from cuepost.ports.records import Page, ProjectKey

_MUTABLE = ("name", "status", "stage", "access_expires_at", "updated_at", "deleted_at")
_KEY = ("account_id", "id")
_MOVE = updated("projects", _KEY, "status", "stage", "updated_at", "exported_at")
# In the order of the fields of `Project`.
_COLUMNS = """
    projects.account_id, projects.id, projects.name, projects.kind AS project_kind,
    projects.origin, projects.status AS project_status, projects.stage,
    projects.access_expires_at, projects.created_at, projects.updated_at, projects.deleted_at,
    projects.exported_at
    """
_OF_ACCOUNT = f"SELECT {_COLUMNS} FROM projects WHERE account_id = :account_id"

_ONE = Sql(f"{_OF_ACCOUNT} AND id = :project_id")
_PAGE = paging.pages(f"{_OF_ACCOUNT} AND deleted_at IS NULL")
_FOUND = Sql(
    f"""
    {_OF_ACCOUNT} AND deleted_at IS NULL
        AND search_name >= :prefix::text AND search_name < :ending::text
    ORDER BY search_name, id LIMIT :most
    """
)
_WITHOUT_SEARCH_NAME = "SELECT account_id, id, name FROM projects WHERE search_name IS NULL LIMIT"
_ANY_WITHOUT_SEARCH_NAME = Sql(f"{_WITHOUT_SEARCH_NAME} 1")
_SOME_WITHOUT_SEARCH_NAME = Sql(f"{_WITHOUT_SEARCH_NAME} :most FOR UPDATE SKIP LOCKED")
_OWNERS = Sql("SELECT id, account_id FROM projects WHERE id IN :project_ids")
# Locked in the order of ids, so that two batches cannot deadlock. The account's number is needed
# next, so it is read as well.
_NUMBERED = f"""
    SELECT {_COLUMNS}, accounts.number
    FROM projects LEFT JOIN accounts ON accounts.id = projects.account_id
    """
_LOCKED_OWN = Sql(
    sqlite=f"""
        {_NUMBERED} WHERE (projects.account_id, projects.id) IN (
            WITH RECURSIVE place(n) AS (
                VALUES (0) UNION ALL
                SELECT n + {ID_BYTES} FROM place WHERE n + {ID_BYTES} < length(:accounts)
            )
            SELECT substr(:accounts, n + 1, {ID_BYTES}), substr(:projects, n + 1, {ID_BYTES})
            FROM place
        )
        ORDER BY projects.id
        """,
    # The planner cannot use a comparison with a list of one for a join, so it has to look up each
    # row and never scans the whole table, however few rows it expects.
    postgresql=f"""
        {_NUMBERED}, unnest(:accounts::uuid[], :projects::uuid[]) AS given (account_id, id)
        WHERE projects.account_id = ANY (ARRAY[given.account_id])
            AND projects.id = ANY (ARRAY[given.id])
        ORDER BY projects.id FOR UPDATE OF projects
        """,
)
_ANY = f"{_NUMBERED} WHERE projects.id IN :projects ORDER BY projects.id FOR UPDATE OF projects"
_LOCKED_ANY = Sql(_ANY)
_UNLOCKED = Sql(f"{_ANY} SKIP LOCKED")
_EXPIRED = Sql(
    f"""
    SELECT {_COLUMNS} FROM projects
    WHERE access_expires_at <= :now AND access_ended_at IS NULL AND deleted_at IS NULL
    ORDER BY access_expires_at LIMIT :most
    """
)
_ARTIFACTS = Sql(
    """
    SELECT kind, name, "key", content_type, size_bytes FROM artifacts
    WHERE account_id = :account_id AND project_id = :project_id ORDER BY "position"
    """
)
_FILES_TO_ERASE = Sql(
    """
    SELECT mine.project_id, mine."key", EXISTS (
        SELECT 1 FROM artifacts AS theirs
        WHERE theirs."key" = mine."key" AND theirs.account_id != mine.account_id
    ) AS is_shared
    FROM artifacts AS mine WHERE mine.account_id = :account_id
    ORDER BY mine.project_id LIMIT :most
    """
)


class ProjectRecords(Records):
    async def add(self, project: Project) -> None:
        row = asdict(project) | {"search_name": search_key(project.name)}
        await self._session.insert("projects", [row])

    async def get(self, account_id: UUID, project_id: UUID) -> Project | None:
        rows = await self._session.fetch(_ONE, account_id=account_id, project_id=project_id)
        return Project(*rows[0]) if rows else None

    async def page(self, account_id: UUID, page: Page) -> list[Project]:
        rows = await self._session.offloaded.fetch(
            _PAGE, account_id=account_id, **paging.bounds(page)
        )
        return [Project(*row) for row in rows]

    async def search(self, account_id: UUID, prefix: str, limit: int) -> list[Project]:
        rows = await self._session.offloaded.fetch(
            _FOUND, account_id=account_id, prefix=prefix, ending=prefix + LAST, most=limit
        )
        return [Project(*row) for row in rows]

    async def lacks_search_names(self) -> bool:
        return bool(await self._session.fetch(_ANY_WITHOUT_SEARCH_NAME))

    async def name_for_search(self, limit: int) -> bool:
        rows = await self._session.fetch(_SOME_WITHOUT_SEARCH_NAME, most=limit)
        named = [
            {"account_id": account_id, "id": project_id, "search_name": search_key(name)}
            for account_id, project_id, name in rows
        ]
        if named:
            await self._session.update("projects", _KEY, named)
        return bool(named)

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
        """Also caches the numbers of their accounts."""
        locked = {}
        for *facts, number in rows:
            project = locked[facts[1]] = Project(*facts)
            if number is not None:
                self._session.numbers.accounts[project.account_id] = number
        return locked

    async def save(self, changed: Sequence[Project]) -> None:
        await self._session.update(
            "projects",
            ("account_id", "id"),
            [
                {"account_id": project.account_id, "id": project.id, "access_ended_at": None}
                | {"search_name": search_key(project.name)}
                | {name: getattr(project, name) for name in _MUTABLE}
                for project in changed
            ],
        )

    async def save_status(self, moved: Sequence[Project]) -> None:
        # One update for each milestone; none of these columns is in an index.
        rows = [
            (each.status, each.stage, each.updated_at, each.exported_at, each.account_id, each.id)
            for each in moved
        ]
        await self._session.write(_MOVE, rows)

    async def expired(self, now: datetime, limit: int) -> list[Project]:
        rows = await self._session.fetch(_EXPIRED, now=now, most=limit)
        return [Project(*row) for row in rows]

    async def artifacts(self, account_id: UUID, project_id: UUID) -> list[Artifact]:
        rows = await self._session.fetch(_ARTIFACTS, account_id=account_id, project_id=project_id)
        return [Artifact(*row) for row in rows]

    async def files_to_erase(self, account_id: UUID, limit: int) -> dict[UUID, list[str]]:
        rows = await self._session.offloaded.fetch(
            _FILES_TO_ERASE, account_id=account_id, most=limit
        )
        found: dict[UUID, list[str]] = {project_id: [] for project_id, _, _ in rows}
        for project_id, key, is_shared in rows:
            if not is_shared:
                found[project_id].append(key)
        return found

    async def replace_artifacts(self, files: Mapping[ProjectKey, Sequence[Artifact]]) -> None:
        await self._session.delete(
            "artifacts",
            ("account_id", "project_id"),
            [
                {"account_id": account_id, "project_id": project_id}
                for account_id, project_id in files
            ],
        )
        await self._session.insert(
            "artifacts",
            [
                {"account_id": account_id, "project_id": project_id, "position": place}
                | asdict(file)
                for (account_id, project_id), each in files.items()
                for place, file in enumerate(each)
            ],
        )
