"""What was acknowledged outlasts a power cut; what would be done again waits for no disk."""

import asyncio
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.domain.access import Account
from cuepost.ports.store import Priority, StoreUnavailable
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
        store._ledger.sync = self._sync

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
        with closing(sqlite3.connect(self._left)) as store:
            return {name for (name,) in store.execute("SELECT name FROM accounts")}


def new(records: Records) -> Account:
    """With a name of its own."""
    account = records.account()
    return replace(account, name=str(account.id))


@pytest.fixture
def disk(sqlite_store: SqliteStore, tmp_path: Path) -> Disk:
    left = tmp_path / "left"
    left.mkdir()
    return Disk(sqlite_store, left)


async def add(store: SqliteStore, account: Account, priority: Priority = Priority.INGEST) -> None:
    await store.write(lambda transaction: transaction.accounts.add(account), priority)


async def names(store: SqliteStore) -> set[str]:
    async with store.snapshot() as transaction:
        return {account.name for account in await transaction.accounts.oldest(100)}


async def test_a_change_is_on_the_disk_when_it_is_over(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    for count in range(1, 4):
        account = new(records)
        await add(sqlite_store, account)
        assert account.name in disk.after_a_power_cut()
        assert disk.syncs == count


async def test_a_transaction_is_on_the_disk_when_it_is_over(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    account = new(records)
    async with sqlite_store.transaction() as transaction:
        await transaction.accounts.add(account)
    assert disk.after_a_power_cut() == {account.name}


async def test_changes_at_the_same_time_wait_for_few_syncs(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    accounts = [new(records) for _ in range(20)]
    await asyncio.gather(*(add(sqlite_store, account) for account in accounts))
    assert disk.after_a_power_cut() == {account.name for account in accounts}
    assert disk.syncs <= 2


async def test_what_would_be_done_again_does_not_wait_for_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    account = new(records)
    await add(sqlite_store, account, Priority.BACKGROUND)
    assert disk.syncs == 0
    assert await names(sqlite_store) == {account.name}


async def test_a_later_change_takes_it_to_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    earlier, later = new(records), new(records)
    await add(sqlite_store, earlier, Priority.BACKGROUND)
    await add(sqlite_store, later)
    assert disk.after_a_power_cut() == {earlier.name, later.name}


async def test_nothing_follows_from_a_change_before_it_is_on_the_disk(
    sqlite_store: SqliteStore, records: Records, disk: Disk
) -> None:
    """A claim may find what was just committed, and must not send it before it lasts."""
    event, claim = new(records), new(records)
    disk.lets_go.clear()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        acknowledged = group.create_task(add(sqlite_store, event))
        while event.name not in await names(sqlite_store):
            await asyncio.wait([acknowledged], timeout=0.001)
        claimed = group.create_task(add(sqlite_store, claim, Priority.BACKGROUND))
        await asyncio.wait([claimed], timeout=0.02)
        assert not acknowledged.done()
        assert claim.name not in await names(sqlite_store)
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
        await add(store, new(records))
    disk.fails = False
    with pytest.raises(StoreUnavailable, match="restart"):
        await add(store, new(records))
    with pytest.raises(StoreUnavailable, match="restart"):
        await store.check()
    await store.close()
    await again.open()
    await add(again, new(records))
    await again.close()


async def test_a_disk_that_fails_is_noticed_although_no_caller_waits_any_more(
    tmp_path: Path, records: Records
) -> None:
    store = SqliteStore(tmp_path / "new.db", records.clock)
    await store.open()
    disk = Disk(store, tmp_path)
    disk.fails = True
    disk.lets_go.clear()
    account = new(records)

    async def change() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.add(account)

    adding = asyncio.ensure_future(change())
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


async def test_a_closed_store_is_on_the_disk(tmp_path: Path, records: Records) -> None:
    store = SqliteStore(tmp_path / "new.db", records.clock)
    left = tmp_path / "left"
    left.mkdir()
    disk = Disk(store, left)
    await store.open()
    account = new(records)
    await add(store, account, Priority.BACKGROUND)
    await store.close()
    assert disk.after_a_power_cut() == {account.name}
