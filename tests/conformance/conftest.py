"""Every test of a store runs on both engines, and leaves no contradiction behind in either."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock
from cuepost.testing import START
from tests.support.postgres import database_name, fresh_database
from tests.support.records import Records
from tests.support.store_rows import AnyStore, compact, contradictions, empty


@pytest.fixture
def records() -> Records:
    return Records()


@pytest.fixture(scope="session")
async def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "cuepost.db"
    store = SqliteStore(path, SystemClock())
    await store.open()
    await store.close()
    compact(path)
    return path


@pytest.fixture(scope="session")
async def template(postgres_url: str) -> AsyncIterator[str]:
    """The name of a migrated database that no one uses, so that it may be copied."""
    async with fresh_database(postgres_url) as url:
        store = PostgresStore(url)
        await store.migrate(START)
        await store.close()
        yield database_name(url)


@pytest.fixture(scope="session")
async def migrated_database(postgres_url: str, template: str) -> AsyncIterator[str]:
    async with fresh_database(postgres_url, template=template) as url:
        yield url


@pytest.fixture(scope="session")
async def opened_postgres(migrated_database: str) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(migrated_database)
    await store.open(START)
    yield store
    await store.close()


@pytest.fixture
async def sqlite_store(migrated_file: Path, tmp_path: Path) -> AsyncIterator[SqliteStore]:
    path = tmp_path / "cuepost.db"
    shutil.copyfile(migrated_file, path)
    store = SqliteStore(path, SystemClock())
    await store.open()
    yield store
    left = await contradictions(store)
    await store.close()
    assert left == []


@pytest.fixture
async def postgres_store(opened_postgres: PostgresStore) -> AsyncIterator[PostgresStore]:
    """Rows are deleted, because a new database with all its partitions would take much longer."""
    yield opened_postgres
    left = await contradictions(opened_postgres)
    await empty(opened_postgres)
    assert left == []


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest) -> AnyStore:
    name = {"sqlite": "sqlite_store", "postgresql": "postgres_store"}[request.param]
    found: AnyStore = request.getfixturevalue(name)
    return found
