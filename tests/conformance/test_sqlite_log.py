"""What was acknowledged outlasts a power cut; what would be done again waits for no disk."""

import asyncio
import os
import shutil
import sqlite3
import threading
from asyncio import Future
from collections.abc import Callable
from concurrent.futures import Executor
from pathlib import Path

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.domain.access import Account
from cuepost.ports.store import Manner, StoreUnavailable
from tests.support.records import Records


class Disk:
    """Keeps what a power cut would leave: the store as it was when it was last synced."""

    def __init__(self, store: SqliteStore, left: Path) -> None:
        self._path = store._path
        self._left = left / "cuepost.db"
        self.syncs = 0
        self.fails = False
        self.lets_go = threading.Event()
        self.lets_go.set()
        store._log.sync = self._sync

    def _sync(self, descriptor: int) -> None:
        assert self.lets_go.wait(5)
        if self.fails:
            raise OSError("no such block")
        os.fdatasync(descriptor)
        self.syncs += 1
        for end in ("", "-wal"):
            shutil.copyfile(f"{self._path}{end}", f"{self._left}{end}")

    def after_a_power_cut(self) -> set[str]:
        """The names of the accounts that are still there."""
        with sqlite3.connect(self._left) as store:
            return {name for (name,) in store.execute("SELECT name FROM accounts")}


@pytest.fixture
def disk(sqlite_store: SqliteStore, tmp_path: Path) -> Disk:
    left = tmp_path / "left"
    left.mkdir()
    return Disk(sqlite_store, left)


async def add(store: SqliteStore, account: Account, manner: Manner = Manner.LASTING) -> None:
    async with store.transaction(manner) as transaction:
        await transaction.accounts.add(account)


async def names(store: SqliteStore) -> set[str]:
    async with store.snapshot() as transaction:
        return {account.name for account in await transaction.accounts.all()}


async def test_a_change_is_on_the_disk_when_it_is_over(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    for count in range(1, 4):
        account = records.account()
        await add(sqlite_store, account)
        assert account.name in disk.after_a_power_cut()
        assert disk.syncs == count


async def test_changes_at_the_same_time_wait_for_few_syncs(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    accounts = [records.account() for _ in range(20)]
    await asyncio.gather(*(add(sqlite_store, account) for account in accounts))
    assert disk.after_a_power_cut() == {account.name for account in accounts}
    assert disk.syncs <= 2


async def test_what_would_be_done_again_does_not_wait_for_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    account = records.account()
    await add(sqlite_store, account, Manner.REPEATABLE)
    assert disk.syncs == 0
    assert await names(sqlite_store) == {account.name}


async def test_a_later_change_takes_it_to_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    earlier, later = records.account(), records.account()
    await add(sqlite_store, earlier, Manner.REPEATABLE)
    await add(sqlite_store, later)
    assert disk.after_a_power_cut() == {earlier.name, later.name}


async def test_nothing_follows_from_a_change_before_it_is_on_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    """A claim may find what was just committed, and must not send it before it lasts."""
    event, claim = records.account(), records.account()
    disk.lets_go.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        acknowledged = group.create_task(add(sqlite_store, event))
        while event.name not in await names(sqlite_store):
            await asyncio.wait([acknowledged], timeout=0.001)
        claimed = group.create_task(add(sqlite_store, claim, Manner.REPEATABLE))
        while claim.name not in await names(sqlite_store):
            await asyncio.wait([claimed], timeout=0.001)
        assert not acknowledged.done()
        assert not claimed.done()
        disk.lets_go.set()
    assert event.name in disk.after_a_power_cut()


async def test_a_disk_that_fails_is_not_trusted_before_a_restart(
    tmp_path: Path, records: Records
) -> None:
    path = tmp_path / "new.db"
    store, again = SqliteStore(path, records.clock), SqliteStore(path, records.clock)
    await store.open()
    disk = Disk(store, tmp_path)
    disk.fails = True
    with pytest.raises(StoreUnavailable, match="no such block"):
        await add(store, records.account())
    disk.fails = False
    with pytest.raises(StoreUnavailable, match="restart"):
        await add(store, records.account())
    with pytest.raises(StoreUnavailable, match="restart"):
        await store.check()
    await store.close()
    await again.open()
    await add(again, records.account())
    await again.close()


async def test_a_disk_that_fails_is_noticed_although_nobody_waits_any_more(
    tmp_path: Path, records: Records
) -> None:
    store = SqliteStore(tmp_path / "new.db", records.clock)
    await store.open()
    disk = Disk(store, tmp_path)
    disk.fails = True
    disk.lets_go.clear()
    account = records.account()
    adding = asyncio.ensure_future(add(store, account))
    while account.name not in await names(store):
        await asyncio.wait([adding], timeout=0.001)
    adding.cancel()
    await asyncio.wait([adding], timeout=0.02)
    assert not adding.done()
    disk.lets_go.set()
    with pytest.raises(asyncio.CancelledError):
        await adding
    with pytest.raises(StoreUnavailable, match="restart"):
        await store.check()
    await store.close()


async def test_a_sync_begins_before_anything_else_has_a_turn(sqlite_store: SqliteStore) -> None:
    log, loop, said = sqlite_store._log, asyncio.get_running_loop(), list[str]()
    begin = loop.run_in_executor

    def run_in_executor(executor: Executor, work: Callable[..., None], *of: int) -> Future[None]:
        said.append("sync")
        return begin(executor, work, *of)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "run_in_executor", run_in_executor)
        loop.call_soon(said.append, "another")
        await log.lasts()
    assert said == ["sync", "another"]


async def test_a_closed_store_is_on_the_disk(tmp_path: Path, records: Records) -> None:
    store = SqliteStore(tmp_path / "new.db", records.clock)
    left = tmp_path / "left"
    left.mkdir()
    disk = Disk(store, left)
    await store.open()
    account = records.account()
    await add(store, account, Manner.REPEATABLE)
    await store.close()
    assert disk.after_a_power_cut() == {account.name}
