"""Every use case runs on both stores, and each test begins with an empty one."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.testing import START, VirtualClock
from tests.application.harness import Harness, local_media, opened_harness
from tests.support.postgres import fresh_database
from tests.support.store_rows import empty


@pytest.fixture(scope="session")
async def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("migrated") / "cuepost.db"
    store = SqliteStore(path, VirtualClock())
    await store.open()
    await store.close()
    return path


@pytest.fixture
async def sqlite_harness(migrated_file: Path, tmp_path: Path) -> AsyncIterator[Harness]:
    path = tmp_path / "cuepost.db"
    shutil.copyfile(migrated_file, path)
    clock = VirtualClock()
    store = SqliteStore(path, clock)
    await store.open()
    yield await opened_harness(store, clock, local_media(tmp_path / "media"))
    await store.close()


@pytest.fixture(scope="session")
async def postgres_store(postgres_url: str) -> AsyncIterator[PostgresStore]:
    async with fresh_database(postgres_url) as url:
        store = PostgresStore(url)
        await store.migrate(START)
        yield store
        await store.close()


@pytest.fixture
async def postgres_harness(postgres_store: PostgresStore, tmp_path: Path) -> Harness:
    """Rows are deleted, because a new database with its partitions takes ten times as long."""
    await empty(postgres_store)
    # A test that lets a month pass leaves without the days that the next one begins with.
    await postgres_store.prepare_days(START)
    media = local_media(tmp_path / "media")
    return await opened_harness(postgres_store, VirtualClock(), media)


@pytest.fixture(params=["sqlite", "postgresql"])
def harness(request: pytest.FixtureRequest) -> Harness:
    kind = {"sqlite": "sqlite_harness", "postgresql": "postgres_harness"}[request.param]
    found = request.getfixturevalue(kind)
    assert isinstance(found, Harness)
    return found
