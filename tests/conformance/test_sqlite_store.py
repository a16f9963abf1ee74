"""What is peculiar to the embedded store: its file, its one writer, its reading threads."""

import asyncio
import hashlib
import shutil
import sqlite3
from datetime import datetime
from pathlib import Path

import anyio
import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.sqlite import READERS, SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.access import Account
from cuepost.ports.store import StoreUnavailable
from cuepost.testing import START
from tests.support import core_statements
from tests.support.records import Records

LIMIT = 20
# Counts for many seconds, unless it is interrupted.
ENDLESS = sa.text(
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000000) "
    "SELECT max(i) FROM n"
)


class HastyClock:
    """Time passes as fast as anybody waits."""

    def __init__(self) -> None:
        self.waited = 0.0

    def now(self) -> datetime:
        return START

    def monotonic(self) -> float:
        return self.waited

    async def wait(self, seconds: float) -> None:
        self.waited += seconds
        await anyio.lowlevel.checkpoint()

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        await self.wait(seconds)
        return event.is_set()


async def add(store: SqliteStore, account: Account) -> None:
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)


async def read_endlessly(store: SqliteStore) -> None:
    async with store.snapshot() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        await core_statements.all_rows(transaction.session, ENDLESS)


def fingerprint(path: Path) -> dict[str, str]:
    return {
        each.name: hashlib.sha256(each.read_bytes()).hexdigest()
        for each in (path, path.with_name(path.name + "-wal"))
    }


def modes(folder: Path, pattern: str) -> dict[str, int]:
    return {path.name: path.stat().st_mode & 0o777 for path in folder.glob(pattern)}


async def test_the_file_is_for_its_owner_alone(tmp_path: Path, sqlite_store: SqliteStore) -> None:
    made = SqliteStore(tmp_path / "new.db", sqlite_store._clock)
    await made.open()
    await add(made, Records().account())
    found = modes(tmp_path, "new.db*")
    await made.close()
    assert found == dict.fromkeys(("new.db", "new.db-shm", "new.db-wal", "new.db.lock"), 0o600)


async def test_reading_connections_cannot_write_at_all(sqlite_store: SqliteStore) -> None:
    for reader in sqlite_store._readers:
        for statement in ("DELETE FROM accounts", "CREATE TABLE t (a)", "PRAGMA user_version = 3"):
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.execute(statement)


async def test_readers_leave_file_and_log_as_they_are_even_the_last_one_to_close(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    """A checkpoint happens in the writer alone, and so under the lock."""
    records = Records()
    for _ in range(20):
        await add(sqlite_store, records.account())
    # As a killed process would leave it.
    left = tmp_path / "left.db"
    for suffix in ("", "-wal", "-shm"):
        shutil.copyfile(f"{sqlite_store._path}{suffix}", f"{left}{suffix}")
    before = fingerprint(left)

    reader = SqliteStore(left, sqlite_store._clock)._connect("ro")
    assert len(reader.execute("SELECT * FROM accounts").fetchall()) == 20
    with pytest.raises(sqlite3.OperationalError):
        reader.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    reader.close()

    assert fingerprint(left) == before


async def test_a_closed_store_has_everything_in_one_file(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    account = Records().account()
    made = SqliteStore(tmp_path / "other.db", sqlite_store._clock)
    await made.open()
    await add(made, account)
    await made.close()

    assert set(modes(tmp_path, "other.db*")) == {"other.db", "other.db.lock"}
    with sqlite3.connect(tmp_path / "other.db") as connection:
        [(name,)] = connection.execute("SELECT name FROM accounts").fetchall()
    connection.close()
    assert name == account.name


async def test_what_is_erased_is_not_left_in_the_file(
    tmp_path: Path, sqlite_store: SqliteStore, records: Records
) -> None:
    """Neither in pages that hold other rows nor in pages that become free."""
    kept = records.account(name="Harbour Films")
    erased = [records.account(name=f"Gone for good {number}") for number in range(300)]
    store = SqliteStore(tmp_path / "erased.db", sqlite_store._clock)
    await store.open()
    for account in (kept, *erased):
        await add(store, account)
    async with store.transaction() as transaction:
        for account in erased:
            assert await transaction.accounts.erase_some(account.id, 100)
    await store.close()
    content = (tmp_path / "erased.db").read_bytes()
    assert (b"Harbour Films" in content, b"Gone for good" in content) == (True, False)


async def test_a_closed_store_refuses_everybody(sqlite_store: SqliteStore, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "closed.db", sqlite_store._clock)
    await store.open()
    await store.close()
    await store.close()
    for begin in (store.transaction, store.snapshot):
        with pytest.raises(StoreUnavailable, match="closed"):
            async with begin():
                raise AssertionError
    with pytest.raises(StoreUnavailable, match="closed"):
        await store.check()


async def test_closing_waits_for_readers_and_refuses_those_still_in_the_queue(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "busy.db", sqlite_store._clock)
    await store.open()
    leave, inside = anyio.Event(), []

    async def read() -> str:
        try:
            async with store.snapshot() as transaction:
                inside.append(await transaction.accounts.oldest(100))
                await leave.wait()
        except StoreUnavailable:
            return "refused"
        return "read"

    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        reading = [group.create_task(read()) for _ in range(READERS)]
        while len(inside) < READERS:
            await anyio.lowlevel.checkpoint()
        closing = group.create_task(store.close())
        await anyio.lowlevel.checkpoint()
        late = group.create_task(read())
        await anyio.lowlevel.checkpoint()
        assert not closing.done()
        leave.set()

    assert [task.result() for task in (*reading, late)] == ["read"] * READERS + ["refused"]


async def test_a_long_read_holds_up_neither_writers_nor_other_readers(
    sqlite_store: SqliteStore,
) -> None:
    account = Records().account()
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        endless = [group.create_task(read_endlessly(sqlite_store)) for _ in range(READERS - 1)]
        await add(sqlite_store, account)
        async with sqlite_store.snapshot() as transaction:
            assert await transaction.accounts.oldest(100) == [account]
        for task in endless:
            assert not task.done()
            task.cancel()


async def test_long_work_of_a_change_leaves_the_loop_free_and_can_be_cancelled(
    sqlite_store: SqliteStore,
) -> None:
    async def work_endlessly() -> None:
        async with sqlite_store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            await transaction.accounts.add(Records().account())
            await core_statements.all_rows(transaction.session.offloaded, ENDLESS)

    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        task = group.create_task(work_endlessly())
        async with sqlite_store.snapshot() as transaction:
            assert await transaction.accounts.oldest(100) == []
        task.cancel()
    async with sqlite_store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == []
    await add(sqlite_store, Records().account())


async def test_a_full_disk_refuses_the_change_and_keeps_the_store(
    sqlite_store: SqliteStore,
) -> None:
    kept, records = Records().account(), Records()
    await add(sqlite_store, kept)
    writer = sqlite_store._require_open()
    writer.execute("PRAGMA max_page_count = 1")
    with pytest.raises(StoreUnavailable, match="full"):
        async with sqlite_store.transaction() as transaction:
            await transaction.events.add([records.event(kept.id) for _ in range(500)])

    writer.execute("PRAGMA max_page_count = 1000000")
    async with sqlite_store.transaction() as transaction:
        await transaction.events.add([records.event(kept.id) for _ in range(500)])
        assert await transaction.accounts.oldest(100) == [kept]


async def test_a_foreign_program_that_writes_is_waited_for_while_others_run(
    sqlite_store: SqliteStore,
) -> None:
    account = Records().account()
    foreign = sqlite3.connect(sqlite_store._path, isolation_level=None)
    foreign.execute("BEGIN IMMEDIATE")
    async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
        waiting = group.create_task(add(sqlite_store, account))
        async with sqlite_store.snapshot() as transaction:
            assert await transaction.accounts.oldest(100) == []
        assert not waiting.done()
        foreign.execute("COMMIT")
    foreign.close()
    async with sqlite_store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == [account]


async def test_no_one_waits_for_ever_for_another_process(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    clock = HastyClock()
    other = SqliteStore(sqlite_store._path, clock)
    async with sqlite_store.transaction():
        with pytest.raises(StoreUnavailable, match="another process"):
            await other.open()
    assert clock.waited == pytest.approx(30, abs=0.1)
    await other.open()
    await other.close()


async def test_a_file_that_is_no_database_is_refused(
    sqlite_store: SqliteStore, tmp_path: Path
) -> None:
    path = tmp_path / "letter.txt"
    path.write_text("Dear reader, " * 1_000)
    store = SqliteStore(path, sqlite_store._clock)
    with pytest.raises(StoreUnavailable, match="not a database"):
        await store.open()
    await store.close()
    assert path.read_text().startswith("Dear reader")
