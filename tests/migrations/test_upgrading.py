"""Which schemas a version works with, and what happens on the way to them."""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage import upgrading
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.schema import WrongSchema
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.system_clock import SystemClock
from cuepost.ports.store import StoreUnavailable
from cuepost.testing import START
from tests.migrations.conftest import HEAD, Database
from tests.migrations.reflection import schema_of
from tests.support.records import Records

LIMIT = 40
NEWER = "UPDATE alembic_version SET version_num = '9999', oldest_code = '{oldest_code}'"


@pytest.fixture
async def sqlite_store(sqlite_database: Database) -> AsyncIterator[SqliteStore]:
    store = SqliteStore(Path(sqlite_database.url.removeprefix("sqlite:///")), SystemClock())
    yield store
    await store.close()


@pytest.fixture
async def postgres_store(postgres: Database) -> AsyncIterator[PostgresStore]:
    store = PostgresStore(postgres.url)
    yield store
    await store.close()


def upgrade_to(revision: str, connection: sa.Connection) -> None:
    upgrading.migrate(connection, revision)


async def run_opener(
    database: Database, *more: str, die: bool = False, die_in_step: int = 0
) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.migrations.opener", database.url, *more),
        stderr=asyncio.subprocess.PIPE,
        env=os.environ
        | ({"DIE_HERE": "1"} if die else {})
        | ({"DIE_IN_STEP": str(die_in_step)} if die_in_step else {}),
    )
    _, error = await asyncio.wait_for(process.communicate(), LIMIT)
    return process.returncode, error.decode()


async def test_an_empty_file_gets_the_newest_schema(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_store.open()
    await sqlite_store.check()
    assert await sqlite_database.revision() == HEAD


async def test_an_older_file_is_migrated_by_itself_and_keeps_its_rows(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_database.do(lambda connection: upgrade_to("0001", connection))
    await sqlite_database.execute(
        "INSERT INTO accounts VALUES (x'01980000000070008000000000000001', 'kept', 1, 5)"
    )
    await sqlite_store.open()
    async with sqlite_store.snapshot() as transaction:
        assert [account.name for account in await transaction.accounts.oldest(100)] == ["kept"]
    assert await sqlite_database.revision() == HEAD


async def test_sessions_from_before_were_not_opened_by_a_link(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_database.do(lambda connection: upgrade_to("0007", connection))
    await sqlite_database.execute(
        "INSERT INTO sessions (account_id, id, user_id, digest, created_at, expires_at) VALUES "
        "(zeroblob(16), zeroblob(16), zeroblob(16), x'00', 0, 9000000000000)"
    )
    await sqlite_store.open()
    async with sqlite_store.snapshot() as transaction:
        session = await transaction.sessions.find(b"\0")
    assert session is not None
    assert not session.by_link


async def test_accounts_from_before_are_live_and_those_of_the_version_before_too(
    database: Database,
) -> None:
    is_postgres = database.url.startswith("postgresql")
    at, account_id = ("now()", "'{}'::uuid") if is_postgres else ("5", "x'{}'")
    insert = "INSERT INTO accounts (id, name, webhooks_enabled, created_at) VALUES ({}, '{}', {})"
    facts = f"true, {at}"
    await database.do(lambda connection: upgrade_to("0009", connection))
    await database.execute(insert.format(account_id.format("01" * 16), "before", facts))
    await database.upgrade()
    await database.execute(insert.format(account_id.format("02" * 16), "beside", facts))
    found = await database.rows("SELECT name, state FROM accounts ORDER BY name")
    assert found == [("before", "live"), ("beside", "live")]


async def test_a_file_of_a_newer_version_is_refused_and_left_alone(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_database.upgrade()
    await sqlite_database.execute(NEWER.format(oldest_code="9999"))
    with pytest.raises(WrongSchema, match=r"\(9999\) was made by a newer cuepost; start that"):
        await sqlite_store.open()
    assert await sqlite_database.revision() == "9999"


async def test_a_file_of_a_newer_version_that_this_one_can_run_on_is_opened(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_database.upgrade()
    await sqlite_database.execute(NEWER.format(oldest_code=HEAD))
    await sqlite_store.open()
    await sqlite_store.check()
    assert await sqlite_database.revision() == "9999"


async def test_a_store_whose_file_was_migrated_under_it_is_not_well(
    sqlite_database: Database, sqlite_store: SqliteStore
) -> None:
    await sqlite_store.open()
    await sqlite_database.execute(NEWER.format(oldest_code="9999"))
    with pytest.raises(StoreUnavailable, match="newer cuepost"):
        await sqlite_store.check()


async def test_an_empty_postgresql_says_which_command_makes_the_schema(
    postgres_store: PostgresStore,
) -> None:
    with pytest.raises(WrongSchema, match="no cuepost schema yet; run 'cuepost migrate'"):
        await postgres_store.open(START)
    with pytest.raises(StoreUnavailable, match="run 'cuepost migrate'"):
        await postgres_store.check()


async def test_an_older_postgresql_says_which_command_migrates_it(
    postgres: Database, postgres_store: PostgresStore
) -> None:
    await postgres.do(lambda connection: upgrade_to("0001", connection))
    with pytest.raises(WrongSchema, match=r"is older \(0001\); run 'cuepost migrate'"):
        await postgres_store.open(START)
    assert await postgres.revision() == "0001"

    with pytest.raises(WrongSchema, match=r"\(0001\) could not go on .* --with-downtime'"):
        await postgres_store.migrate(START)
    assert await postgres.revision() == "0001"

    assert await postgres_store.migrate(START, with_downtime=True)
    assert await postgres.revision() == HEAD
    await postgres_store.open(START)
    await postgres_store.check()
    assert not await postgres_store.migrate(START)


async def test_a_postgresql_of_a_newer_version_is_refused_and_left_alone(
    postgres: Database, postgres_store: PostgresStore
) -> None:
    await postgres_store.migrate(START)
    await postgres.execute(NEWER.format(oldest_code="9999"))
    for refused in (postgres_store.open(START), postgres_store.migrate(START)):
        with pytest.raises(WrongSchema, match=r"\(9999\) was made by a newer cuepost; start that"):
            await refused
    with pytest.raises(StoreUnavailable, match="newer cuepost"):
        await postgres_store.check()
    assert await postgres.revision() == "9999"


async def test_a_postgresql_of_a_newer_version_that_this_one_can_run_on_is_used(
    postgres: Database, postgres_store: PostgresStore
) -> None:
    await postgres_store.migrate(START)
    await postgres.execute(NEWER.format(oldest_code=HEAD))
    await postgres_store.open(START)
    await postgres_store.check()
    assert not await postgres_store.migrate(START)
    assert await postgres.revision() == "9999"


async def test_a_newer_schema_that_says_nothing_of_older_versions_is_refused(
    database: Database,
) -> None:
    await database.upgrade()
    await database.execute("UPDATE alembic_version SET version_num = '9999', oldest_code = NULL")
    found = await database.found()
    with pytest.raises(WrongSchema, match="newer cuepost"):
        found.require_usable()


@pytest.mark.parametrize("die", [False, True], ids=["by an error", "by kill -9"])
async def test_a_migration_that_breaks_off_leaves_the_old_schema(
    database: Database, broken_migrations: Path, die: bool
) -> None:
    await database.upgrade()
    before = await database.do(schema_of)

    status, error = await run_opener(database, str(broken_migrations), die=die)

    assert (status, "on purpose" in error) == ((-signal.SIGKILL, False) if die else (1, True))
    assert await database.revision() == HEAD
    assert await database.do(schema_of) == before
    assert not await database.upgrade()


async def test_several_processes_may_start_on_nothing_at_once(database: Database) -> None:
    starts = [run_opener(database) for _ in range(3)]
    assert await asyncio.gather(*starts) == [(0, "")] * 3
    assert await database.revision() == HEAD


async def test_of_several_that_migrate_at_once_one_does_the_work(postgres: Database) -> None:
    stores = [PostgresStore(postgres.url) for _ in range(4)]
    migrations = asyncio.gather(*(store.migrate(START) for store in stores))
    done = await asyncio.wait_for(migrations, LIMIT)
    assert sorted(done) == [False, False, False, True]
    account = Records().account()
    async with stores[0].transaction() as transaction:
        await transaction.accounts.add(account)
    for store in stores:
        await store.close()
