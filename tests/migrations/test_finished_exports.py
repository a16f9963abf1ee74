"""An upgrade finds out which projects have a result, and since when."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import tables
from cuepost.domain.instants import compose, to_millis
from cuepost.testing import START
from tests.migrations import old_values as old
from tests.migrations.conftest import Database
from tests.migrations.plain_sql import insert, make_days
from tests.migrations.test_upgrading import upgrade_to

COMPLETED, UPDATED = START - timedelta(days=1), START - timedelta(hours=1)
FILES = ("film.mp4", "film.vtt")
# Name, status, files, and when it was completed as far as its events are still kept.
PROJECTS: tuple[tuple[str, str, tuple[str, ...], datetime | None, datetime | None], ...] = (
    ("completed", "completed", FILES, COMPLETED, COMPLETED),
    ("completed without files", "completed", (), COMPLETED, COMPLETED),
    ("completed before history begins", "completed", FILES, None, UPDATED),
    ("exporting again", "exporting", FILES, COMPLETED, COMPLETED),
    ("exporting again, history gone", "exporting", FILES, None, UPDATED),
    ("cancelled after completion", "cancelled", FILES, COMPLETED, COMPLETED),
    ("failed after completion", "failed", (), COMPLETED, COMPLETED),
    ("never completed", "exporting", (), None, None),
    ("cancelled before completion", "cancelled", (), None, None),
)


def fill(connection: sa.Connection) -> None:
    upgrade_to("0005", connection)
    make_days(connection, *(COMPLETED + timedelta(days=days) for days in (-2, 0, 0.5)))
    for number, (name, status, files, completed, _) in enumerate(PROJECTS):
        project = {"account_id": old.ACCOUNT, "project_id": old.fixed(number)}
        insert(connection, "projects", _project(number, name, status))
        for position, file in enumerate(files):
            insert(connection, "artifacts", project | _artifact(position, file))
        if completed is not None:
            for days, kind in ((-2, "completed"), (0, "completed"), (0.5, "failed")):
                event = _event(number, f"project.{kind}", completed + timedelta(days=days))
                insert(connection, "events", project | event)


def _project(number: int, name: str, status: str) -> dict[str, Any]:
    return {
        "account_id": old.ACCOUNT,
        "id": old.fixed(number),
        "name": name,
        "kind": "video",
        "origin": "api",
        "status": status,
        "stage": "export",
        "access_expires_at": None,
        "created_at": START - timedelta(days=40),
        "updated_at": UPDATED,
        "deleted_at": None,
        "access_ended_at": None,
    }


def _artifact(position: int, name: str) -> dict[str, Any]:
    kind = {"kind": "video", "content_type": "video/mp4", "size_bytes": 7}
    return {"position": position, "name": name, "key": f"a/{name}", **kind}


def _event(number: int, kind: str, happened: datetime) -> dict[str, Any]:
    return {
        "id": compose(to_millis(happened), number),
        "type": kind,
        "occurred_at": happened,
        "body": b"{}",
        "reason": None,
    }


@pytest.mark.parametrize("deleted", [False, True])
async def test_projects_that_were_completed_once_have_a_result_after_an_upgrade(
    database: Database, deleted: bool
) -> None:
    await database.do(fill)
    if deleted:
        await database.execute("UPDATE projects SET deleted_at = updated_at")
    await database.upgrade()

    def found(connection: sa.Connection) -> dict[str, datetime | None]:
        columns = tables.projects.c.name, tables.projects.c.exported_at
        return {row.name: row.exported_at for row in connection.execute(sa.select(*columns))}

    assert await database.do(found) == {
        name: None if deleted else exported_at for name, *_, exported_at in PROJECTS
    }
