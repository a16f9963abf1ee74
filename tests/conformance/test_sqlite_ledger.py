"""Writes of the hot path that wait at the same time share one commit, and nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import TypeVar

import pytest

from cuepost.adapters.storage import sqlite_ledger
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.work_threads import WorkThreads
from cuepost.domain.access import Account
from cuepost.ports.store import Priority, StoreUnavailable, Transaction
from tests.support.records import Records

T = TypeVar("T")
Work = Callable[[Transaction], Awaitable[None]]
MANY = 20


class CountedCommits:
    """Counts them; they fail when they are told to."""

    def __init__(self, store: SqliteStore) -> None:
        self.count = 0
        self.fails = False
        self._commit = store._ledger.commit
        store._ledger.commit = self._counted  # type: ignore[method-assign]  # the seam to the disk

    async def _counted(self, rows: int, *, durable: bool) -> None:
        self.count += 1
        if self.fails:
            raise StoreUnavailable("the disk is full")
        await self._commit(rows, durable=durable)


def adding(account: Account) -> Work:
    async def add(transaction: Transaction) -> None:
        await transaction.accounts.add(account)

    return add


async def nothing(_: Transaction) -> None: ...


async def failing(_: Transaction) -> None:
    raise LookupError("on purpose")


async def all_at_once(
    store: SqliteStore, *works: Work, priority: Priority = Priority.INGEST
) -> list[BaseException | None]:
    return await asyncio.gather(
        *(store.write(work, priority) for work in works), return_exceptions=True
    )


async def stored(store: SqliteStore) -> list[Account]:
    async with store.snapshot() as transaction:
        return await transaction.accounts.oldest(100)


async def test_writes_that_wait_together_are_committed_together(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits, accounts = CountedCommits(sqlite_store), [records.account() for _ in range(MANY)]
    assert await all_at_once(sqlite_store, *map(adding, accounts)) == [None] * MANY
    assert await stored(sqlite_store) == accounts
    assert commits.count == 1


async def test_one_after_the_other_they_are_committed_one_by_one(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits = CountedCommits(sqlite_store)
    for _ in range(3):
        await sqlite_store.write(adding(records.account()), Priority.BACKGROUND)
    assert commits.count == 3


async def test_what_callers_wait_for_is_written_first_and_without_the_rest(
    sqlite_store: SqliteStore,
) -> None:
    commits, done = CountedCommits(sqlite_store), list[tuple[Priority, int]]()

    async def write(priority: Priority) -> None:
        await sqlite_store.write(nothing, priority)
        done.append((priority, commits.count))

    given = [Priority.BACKGROUND, Priority.INGEST, Priority.BACKGROUND, Priority.INGEST]
    await asyncio.gather(*(write(each) for each in given))
    assert done == [(Priority.INGEST, 1)] * 2 + [(Priority.BACKGROUND, 2)] * 2


async def test_the_rest_is_let_past_once(sqlite_store: SqliteStore) -> None:
    """However many callers there are, claims and results go on."""
    commits, most = CountedCommits(sqlite_store), 20

    async def call_without_end() -> None:
        while commits.count < most:
            await sqlite_store.write(nothing, Priority.INGEST)

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        group.create_task(call_without_end())
        group.create_task(call_without_end())
        await sqlite_store.write(nothing, Priority.BACKGROUND)
        assert commits.count <= 3


async def test_a_write_gets_its_own_answer(sqlite_store: SqliteStore) -> None:
    def answering(number: int) -> Callable[[Transaction], Awaitable[int]]:
        async def answer(_: Transaction) -> int:
            return number

        return answer

    answers = await asyncio.gather(
        *(sqlite_store.write(answering(number), Priority.INGEST) for number in range(3))
    )
    assert answers == [0, 1, 2]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_a_write_that_fails_leaves_the_others_alone(
    sqlite_store: SqliteStore, records: Records, place: int
) -> None:
    one, other = records.account(), records.account()
    works = [adding(one), adding(other)]
    works.insert(place, failing)
    answers = await all_at_once(sqlite_store, *works)
    assert [type(each) for each in answers if each] == [LookupError]
    assert isinstance(answers[place], LookupError)
    assert await stored(sqlite_store) == [one, other]


async def test_a_rollback_of_the_engine_rolls_no_other_back(
    sqlite_store: SqliteStore, records: Records
) -> None:
    """As after an interrupted statement: the engine rolls back more than the one write."""

    async def broken(_: Transaction) -> None:
        sqlite_store._require_open().execute("ROLLBACK")
        raise LookupError

    one, other = records.account(), records.account()
    answers = await all_at_once(sqlite_store, adding(one), broken, adding(other))
    assert [type(each) for each in answers] == [type(None), LookupError, type(None)]
    assert await stored(sqlite_store) == [one, other]


async def test_when_the_commit_fails_everybody_in_it_is_told_once(
    sqlite_store: SqliteStore, records: Records
) -> None:
    commits = CountedCommits(sqlite_store)
    commits.fails = True
    answers = await all_at_once(sqlite_store, *(adding(records.account()) for _ in range(3)))
    assert [type(each) for each in answers] == [StoreUnavailable] * 3
    assert commits.count == 1
    assert await stored(sqlite_store) == []
    commits.fails = False
    await sqlite_store.write(adding(records.account()), Priority.INGEST)
    assert len(await stored(sqlite_store)) == 1


async def test_whoever_is_cancelled_before_its_turn_has_written_nothing(
    sqlite_store: SqliteStore, records: Records
) -> None:
    kept, given_up = records.account(), records.account()
    async with asyncio.timeout(5), sqlite_store.transaction() as transaction:
        waiting = asyncio.ensure_future(sqlite_store.write(adding(given_up), Priority.BACKGROUND))
        await asyncio.wait([waiting], timeout=0)
        waiting.cancel()
        await transaction.accounts.add(kept)
    await sqlite_store.write(adding(records.account()), Priority.BACKGROUND)
    assert given_up not in await stored(sqlite_store)
    assert kept in await stored(sqlite_store)


async def test_whoever_is_cancelled_while_the_one_before_it_runs_has_written_nothing(
    sqlite_store: SqliteStore, records: Records
) -> None:
    first, given_up, last = (records.account() for _ in range(3))
    later: list[asyncio.Future[None]] = []

    async def cancelling(transaction: Transaction) -> None:
        await adding(first)(transaction)
        later[0].cancel()

    writes = [cancelling, adding(given_up), adding(last)]
    async with asyncio.timeout(5):
        made = [asyncio.ensure_future(sqlite_store.write(each, Priority.INGEST)) for each in writes]
        later.append(made[1])
        await asyncio.wait(made)
    assert await stored(sqlite_store) == [first, last]


async def test_whoever_gives_up_while_it_waits_for_the_disk_holds_up_no_other(
    sqlite_store: SqliteStore, records: Records
) -> None:
    accounts = [records.account() for _ in range(3)]
    commits = CountedCommits(sqlite_store)
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(sqlite_store.write(adding(account), Priority.INGEST))
            for account in accounts
        ]
        while not commits.count:
            await asyncio.wait(tasks, timeout=0.001)
        tasks[0].cancel()
        tasks[1].cancel()
    assert await stored(sqlite_store) == accounts


async def test_a_write_waits_for_a_change_that_is_under_way(
    sqlite_store: SqliteStore, records: Records
) -> None:
    first, second = records.account(), records.account()
    async with asyncio.timeout(5), sqlite_store.transaction() as transaction:
        writing = asyncio.ensure_future(sqlite_store.write(adding(second), Priority.INGEST))
        await asyncio.wait([writing], timeout=0.01)
        assert not writing.done()
        await transaction.accounts.add(first)
    await writing
    assert await stored(sqlite_store) == [first, second]


async def test_turns_that_were_cancelled_begin_again(
    sqlite_store: SqliteStore, records: Records
) -> None:
    first, second = records.account(), records.account()
    async with sqlite_store.transaction():
        waiting = asyncio.ensure_future(sqlite_store.write(adding(first), Priority.BACKGROUND))
        await asyncio.wait([waiting], timeout=0)
        turns = sqlite_store._ledger._turns
        assert turns is not None
        turns.cancel()
        await asyncio.wait([turns])
    async with asyncio.timeout(5):
        await sqlite_store.write(adding(second), Priority.BACKGROUND)
        await waiting
    assert await stored(sqlite_store) == [first, second]


async def test_closing_waits_for_callers_that_wait_for_the_disk(
    tmp_path: Path, records: Records
) -> None:
    path = tmp_path / "cuepost.db"
    store, again = SqliteStore(path, records.clock), SqliteStore(path, records.clock)
    await store.open()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(store.write(adding(records.account()), Priority.INGEST))
            for _ in range(3)
        ]
        await asyncio.wait(tasks, timeout=0)
        await store.close()
    await again.open()
    assert len(await stored(again)) == 3
    await again.close()


class Checkpoints:
    """Of the log, as the writing connection is told to make them."""

    def __init__(self, store: SqliteStore) -> None:
        self.count = 0
        store._require_open().set_trace_callback(self._note)

    def _note(self, statement: str) -> None:
        self.count += "wal_checkpoint" in statement


@pytest.mark.parametrize(("priority", "rows"), [(Priority.BACKGROUND, 10), (Priority.INGEST, 20)])
async def test_the_log_is_emptied_behind_a_write_without_a_waiting_caller_if_one_comes(
    sqlite_store: SqliteStore,
    records: Records,
    monkeypatch: pytest.MonkeyPatch,
    priority: Priority,
    rows: int,
) -> None:
    monkeypatch.setattr(sqlite_ledger, "CHECKPOINT_ROWS", 10)
    checkpoints = Checkpoints(sqlite_store)
    for row in range(rows):
        assert checkpoints.count == 0, row
        await sqlite_store.write(adding(records.account()), priority)
    async with sqlite_store.transaction():
        assert checkpoints.count == 1


class KeepingThreads(WorkThreads):
    """Keeps what its work returns, as a thread does that is suspended before it lets go of it."""

    def __init__(self) -> None:
        super().__init__(1, "keeping")
        self.kept: list[object] = []

    def run(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        def kept() -> T:
            made = work()
            self.kept.append(made)
            return made

        return super().run(kept)


async def test_a_checkpoint_is_over_before_the_next_write_is_committed(
    sqlite_store: SqliteStore, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite refuses to commit while a checkpoint has a row that no one has read."""
    monkeypatch.setattr(sqlite_ledger, "CHECKPOINT_ROWS", 1)
    checkpoints = Checkpoints(sqlite_store)
    with closing(KeepingThreads()) as threads, monkeypatch.context() as patch:
        patch.setattr(sqlite_store._ledger, "threads", threads)
        for _ in range(3):
            await sqlite_store.write(adding(records.account()), Priority.INGEST)
            await sqlite_store.write(adding(records.account()), Priority.INGEST)
        async with sqlite_store.transaction():
            assert checkpoints.count == 3
