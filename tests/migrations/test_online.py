"""Migrations of a PostgreSQL that services write to at the same time."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from cuepost.adapters.storage import postgres_upgrading, schema
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.ports.store import Contention, StoreUnavailable
from cuepost.testing import START
from tests.migrations.conftest import HEAD, Database
from tests.support.code_versions import add_migrations

LIMIT = 40
# What a writer has while its transaction is open.
WRITES_TO = "LOCK TABLE {} IN ROW EXCLUSIVE MODE"
COLUMN = 'op.add_column("queue", sa.Column("added", sa.Integer(), nullable=True))'
INDEX = 'create_index_concurrently("{0}_by_status_id", "{0}", ["status", "id"])'
VALID = "SELECT indisvalid FROM pg_index WHERE indexrelid = to_regclass('{}')"
BUILDING = "FROM pg_stat_activity WHERE query LIKE 'CREATE INDEX CONCURRENTLY%'"
UNINDEXED = """
    SELECT count(*) FROM pg_inherits i WHERE i.inhparent = 'deliveries'::regclass AND NOT EXISTS (
        SELECT FROM pg_index x JOIN pg_inherits p ON p.inhrelid = x.indexrelid
        WHERE x.indrelid = i.inhrelid AND p.inhparent = 'deliveries_by_status_id'::regclass
            AND x.indisvalid
    )
"""


@pytest.fixture
async def store(postgres: Database) -> AsyncIterator[PostgresStore]:
    """Of this version, on its own schema."""
    store = PostgresStore(postgres.url)
    await store.migrate(START)
    yield store
    await store.close()


@pytest.fixture
def migrations(
    store: PostgresStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    """From here on this is a version with migrations of its own."""
    location = tmp_path / "migrations"
    shutil.copytree(schema.MIGRATIONS, location, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(schema, "MIGRATIONS", location)
    monkeypatch.setattr(postgres_upgrading, "LOCK_AGAIN_SECONDS", 0.02)
    yield location
    schema.revisions.cache_clear()


def added(migrations: Path, *upgrades: str) -> str:
    """The newest revision there is now."""
    revisions = add_migrations(migrations, *upgrades)
    schema.revisions.cache_clear()
    return revisions[-1]


@asynccontextmanager
async def connected(url: str) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        yield connection
    finally:
        await connection.close()


@asynccontextmanager
async def writer(url: str, table: str) -> AsyncIterator[None]:
    async with connected(url) as connection, connection.transaction():
        await connection.execute(WRITES_TO.format(table))
        yield


async def write(url: str, table: str) -> None:
    """A writer that gets its lock soon."""
    async with connected(url) as connection, connection.transaction():
        await connection.execute(WRITES_TO.format(table), timeout=LIMIT)


async def test_a_migration_that_gets_no_lock_lets_others_pass_and_tries_again(
    postgres: Database,
    store: PostgresStore,
    migrations: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    newest = added(migrations, COLUMN)
    with caplog.at_level(logging.WARNING, "cuepost.store"):
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
            async with writer(postgres.url, "queue"):
                upgrading = tasks.create_task(store.migrate(START))
                while "event=waiting_for_locks tries=2" not in caplog.text:
                    await write(postgres.url, "queue")
                assert await postgres.revision() == HEAD
            assert await upgrading
    assert await postgres.revision() == newest


async def test_a_lock_that_is_never_free_is_given_up(
    postgres: Database,
    store: PostgresStore,
    migrations: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_upgrading, "LOCK_TRIES", 2)
    added(migrations, COLUMN)
    async with writer(postgres.url, "queue"):
        with pytest.raises(Contention, match="lock timeout"):
            await asyncio.wait_for(store.migrate(START), LIMIT)
    assert await postgres.revision() == HEAD


async def test_on_an_embedded_store_it_is_an_index_like_any_other(
    sqlite_database: Database, migrations: Path
) -> None:
    added(migrations, INDEX.format("deliveries"))
    await sqlite_database.upgrade()
    found = "SELECT tbl_name FROM sqlite_master WHERE name = 'deliveries_by_status_id'"
    assert await sqlite_database.rows(found) == [("deliveries",)]


@pytest.mark.parametrize("table", ["queue", "deliveries"])
async def test_an_index_is_built_beside_writers(
    postgres: Database, store: PostgresStore, migrations: Path, table: str
) -> None:
    """It waits for the writers that came before it; no writer waits for it."""
    newest = added(migrations, INDEX.format(table))
    written = await one_partition(postgres) if table == "deliveries" else table
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as tasks:
        async with writer(postgres.url, written):
            upgrades = [tasks.create_task(store.migrate(START)) for _ in range(3)]
            async with connected(postgres.url) as connection:
                while not await connection.fetchval(f"SELECT count(*) {BUILDING}"):
                    await write(postgres.url, written)
            await write(postgres.url, written)
            assert not any(each.done() for each in upgrades)
        assert sorted([await each for each in upgrades]) == [False, False, True]
    assert await postgres.rows(VALID.format(f"{table}_by_status_id")) == [(True,)]
    assert await postgres.revision() == newest


async def one_partition(postgres: Database) -> str:
    [(name,)] = await postgres.rows(
        "SELECT max(inhrelid::regclass::text) FROM pg_inherits "
        "WHERE inhparent = 'deliveries'::regclass"
    )
    assert isinstance(name, str)
    return name


async def test_an_index_that_was_interrupted_is_built_again(
    postgres: Database, store: PostgresStore, migrations: Path
) -> None:
    """Days that were added during the migration have it, too."""
    newest = added(migrations, INDEX.format("deliveries"))
    partition = await one_partition(postgres)
    async with asyncio.timeout(LIMIT), writer(postgres.url, partition):
        upgrading = asyncio.ensure_future(store.migrate(START))
        unfinished = f"deliveries_by_status_id_{partition.rpartition('_')[2]}"
        while await postgres.rows(VALID.format(unfinished)) != [(False,)]:
            assert not upgrading.done()
        await postgres.rows(f"SELECT pg_terminate_backend(pid) {BUILDING}")
        with pytest.raises(StoreUnavailable):
            await upgrading
        await store.prepare_days(START + timedelta(days=2))
    assert await postgres.rows(VALID.format("deliveries_by_status_id")) == [(False,)]
    assert await postgres.revision() == HEAD

    assert await asyncio.wait_for(store.migrate(START), LIMIT)
    assert await postgres.rows(UNINDEXED) == [(0,)]
    assert await postgres.rows(VALID.format("deliveries_by_status_id")) == [(True,)]
    assert await postgres.revision() == newest
