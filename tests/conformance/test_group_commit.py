"""Changes on the embedded store that wait at the same time share one commit, and nothing else."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

from cuepost.adapters.storage import group_commit
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.sqlite_session import driver_of
from cuepost.domain.access import Account
from cuepost.ports.store import Contention, Manner, StoreUnavailable, Transaction
from tests.support.records import Records

T = TypeVar("T")
Work = Callable[[Transaction], Awaitable[None]]
MANY = 20


class CountedCommits:
    """Counts them; the next one fails when it is told to."""

    def __init__(self, store: SqliteStore) -> None:
        self.count = 0
        self.fails = False
        self._commit = store._changes.commit
        store._changes.commit = self._counted  # type: ignore[method-assign]  # the seam to the disk

    async def _counted(self, driver: sqlite3.Connection) -> None:
        self.count += 1
        if self.fails:
            raise StoreUnavailable("the disk is full")
        await self._commit(driver)


async def change(store: SqliteStore, work: Work) -> None:
    async with store.transaction() as transaction:
        await work(transaction)


def adding(account: Account) -> Work:
    async def add(transaction: Transaction) -> None:
        await transaction.accounts.add(account)

    return add


async def failing(transaction: Transaction) -> None:
    raise LookupError("on purpose")


async def all_at_once(store: SqliteStore, *works: Work) -> list[BaseException | None]:
    return await asyncio.gather(*(change(store, work) for work in works), return_exceptions=True)


async def stored(store: SqliteStore) -> list[Account]:
    async with store.snapshot() as transaction:
        return await transaction.accounts.all()


async def test_changes_that_wait_together_are_written_together(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits, accounts = CountedCommits(sqlite_store), [records.account() for _ in range(MANY)]
    assert await all_at_once(sqlite_store, *map(adding, accounts)) == [None] * MANY
    assert await stored(sqlite_store) == accounts
    assert commits.count == 1


async def test_one_after_the_other_they_are_written_one_by_one(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits = CountedCommits(sqlite_store)
    for _ in range(3):
        await change(sqlite_store, adding(records.account()))
    assert commits.count == 3


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_change_that_fails_leaves_the_others_alone(
    sqlite_store: SqliteStore, records: Records, place: int
) -> None:
    one, other = records.account(), records.account()
    works = [adding(one), adding(other)]
    works.insert(place, failing)
    answers = await all_at_once(sqlite_store, *works)
    assert [type(each) for each in answers if each] == [LookupError]
    assert isinstance(answers[place], LookupError)
    assert await stored(sqlite_store) == [one, other]


async def test_when_the_commit_fails_everybody_in_it_is_told(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits = CountedCommits(sqlite_store)
    commits.fails = True
    answers = await all_at_once(sqlite_store, *(adding(records.account()) for _ in range(3)))
    assert [type(each) for each in answers] == [StoreUnavailable] * 3
    assert await stored(sqlite_store) == []
    commits.fails = False
    await change(sqlite_store, adding(records.account()))
    assert len(await stored(sqlite_store)) == 1


async def test_a_rollback_of_the_engine_is_told_to_everybody_in_the_group(
    sqlite_store: SqliteStore, records: Records
) -> None:
    """As after an interrupted statement: the engine rolls back more than the one change."""

    async def broken(transaction: Transaction) -> None:
        driver = sqlite_store._require_open().connection.driver_connection
        assert driver is not None
        driver.execute("ROLLBACK")
        raise LookupError

    last = records.account()
    answers = await all_at_once(sqlite_store, adding(records.account()), broken, adding(last))
    assert [type(each) for each in answers] == [Contention, LookupError, type(None)]
    assert await stored(sqlite_store) == [last]


async def test_whoever_gives_up_while_it_waits_for_the_disk_holds_nobody_up(
    sqlite_store: SqliteStore, records: Records
) -> None:
    accounts = [records.account() for _ in range(3)]
    commits = CountedCommits(sqlite_store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [group.create_task(change(sqlite_store, adding(account))) for account in accounts]
        while not commits.count:
            await asyncio.wait(tasks, timeout=0.001)
        tasks[0].cancel()
        tasks[1].cancel()
    assert await stored(sqlite_store) == accounts


async def test_closing_waits_for_those_who_wait_for_the_disk(
    tmp_path: Path, records: Records
) -> None:
    path = tmp_path / "cuepost.db"
    store, again = SqliteStore(path, records.clock), SqliteStore(path, records.clock)
    await store.open()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [group.create_task(change(store, adding(records.account()))) for _ in range(3)]
        await asyncio.wait(tasks, timeout=0)
        await store.close()
    await again.open()
    assert len(await stored(again)) == 3
    await again.close()


class Checkpoints:
    """Of the log, as the writing connection is told to make them."""

    def __init__(self, store: SqliteStore) -> None:
        self.count = 0
        driver_of(store._require_open()).set_trace_callback(self._note)

    def _note(self, statement: str) -> None:
        self.count += "wal_checkpoint" in statement


@pytest.mark.parametrize(("manner", "rows"), [(Manner.REPEATABLE, 10), (Manner.LASTING, 20)])
async def test_the_log_is_emptied_behind_a_change_that_nobody_waits_for_if_one_comes(
    sqlite_store: SqliteStore,
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    manner: Manner,
    rows: int,
) -> None:
    monkeypatch.setattr(group_commit, "ROWS_IN_THE_LOG", 10)
    checkpoints = Checkpoints(sqlite_store)
    for row in range(rows):
        assert checkpoints.count == 0, row
        async with sqlite_store.transaction(manner) as transaction:
            await transaction.accounts.add(records.account())
    assert checkpoints.count == 1


class KeepingThreads(ThreadPoolExecutor):
    """Keeps what its work returns, as a thread does that is suspended before it lets go of it."""

    def __init__(self) -> None:
        super().__init__(1)
        self.kept: list[object] = []

    def submit(self, work: Callable[..., T], /, *arguments: Any, **named: Any) -> Future[T]:
        def kept() -> T:
            made = work(*arguments, **named)
            self.kept.append(made)
            return made

        return super().submit(kept)


async def test_a_checkpoint_is_over_before_the_next_change_is_committed(
    sqlite_store: SqliteStore, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses to commit while a checkpoint has a row that nobody has read."""
    monkeypatch.setattr(group_commit, "ROWS_IN_THE_LOG", 1)
    checkpoints = Checkpoints(sqlite_store)
    with KeepingThreads() as threads:
        sqlite_store._changes.threads = threads
        for _ in range(3):
            await change(sqlite_store, adding(records.account()))
            await change(sqlite_store, adding(records.account()))
    assert checkpoints.count == 3
