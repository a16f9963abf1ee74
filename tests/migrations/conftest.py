"""An engine for each of the two databases, with nothing in them yet."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import asyncpg
import pytest
import sqlalchemy as sa
from alembic.script import ScriptDirectory
from sqlalchemy.ext.asyncio import create_async_engine

from cuepost.adapters.storage import schema, upgrading
from cuepost.adapters.storage.postgres_upgrading import upgrade_postgres

T = TypeVar("T")

HEAD = ScriptDirectory(str(schema.MIGRATIONS)).get_current_head()
BROKEN = '''"""Makes a table and then goes wrong."""

import os
import signal

from alembic import op

revision = "8888"
down_revision = "{head}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("CREATE TABLE half_done (id INTEGER)")
    op.execute("ALTER TABLE accounts ADD COLUMN half_done INTEGER")
    if os.environ.get("DIE_HERE"):
        os.kill(os.getpid(), signal.SIGKILL)
    raise LookupError("on purpose")
'''


class Database:
    """Runs work on a connection of its own, in one transaction."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def do(self, work: Callable[[sa.Connection], T]) -> T:
        if not self.url.startswith("postgresql"):
            engine = sa.create_engine(self.url, poolclass=sa.NullPool)
            with engine.begin() as connection:
                return work(connection)
        asyncpg = sa.make_url(self.url).set(drivername="postgresql+asyncpg")
        async with create_async_engine(asyncpg, poolclass=sa.NullPool).begin() as connection:
            return await connection.run_sync(work)

    async def found(self) -> schema.Found:
        if not self.url.startswith("postgresql"):
            with closing(sqlite3.connect(str(sa.make_url(self.url).database))) as file:
                return schema.found_on_sqlite(file)
        driver = await asyncpg.connect(self.url)
        try:
            return await schema.found_on_postgres(driver)
        finally:
            await driver.close()

    async def migrate(self) -> None:
        """To the newest schema only; some indexes are built outside of a transaction."""
        if not self.url.startswith("postgresql"):
            await self.do(upgrading.upgrade)
            return
        asyncpg = sa.make_url(self.url).set(drivername="postgresql+asyncpg")
        async with create_async_engine(asyncpg, poolclass=sa.NullPool).connect() as connection:
            await connection.run_sync(upgrading.migrate)
            await connection.commit()

    async def upgrade(self) -> bool:
        """To the newest schema, with everything that is to be moved; whether that took anything."""
        if self.url.startswith("postgresql"):
            return await upgrade_postgres(self.url, with_downtime=True)
        changed = await self.do(upgrading.upgrade)
        while await self.do(upgrading.move_some):
            changed = True
        return changed

    async def rows(self, sql: str) -> list[tuple[Any, ...]]:
        return await self.do(lambda on: [tuple(row) for row in on.exec_driver_sql(sql)])

    async def execute(self, sql: str) -> None:
        def run(connection: sa.Connection) -> None:
            connection.exec_driver_sql(sql)

        await self.do(run)

    async def revision(self) -> str:
        [(revision,)] = await self.rows("SELECT version_num FROM alembic_version")
        assert isinstance(revision, str)
        return revision


@pytest.fixture
def sqlite_database(tmp_path: Path) -> Database:
    return Database(f"sqlite:///{tmp_path / 'cuepost.db'}")


@pytest.fixture
def postgres(postgres_database: str) -> Database:
    return Database(postgres_database)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Database:
    name = {"sqlite": "sqlite_database", "postgresql": "postgres"}[request.param]
    found: Database = request.getfixturevalue(name)
    return found


@pytest.fixture
def broken_migrations(tmp_path: Path) -> Path:
    """A newer version of cuepost, whose next migration goes wrong half-way."""
    location = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, location, ignore=shutil.ignore_patterns("__pycache__"))
    (location / "versions" / "8888_broken.py").write_text(BROKEN.format(head=HEAD))
    return location
