"""On the embedded store, what can be done again makes room for what is being accepted."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from uuid import UUID

import anyio.lowlevel
import pytest

from cuepost.adapters.storage.outbox import NoHandover
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.sqlite_session import MANY_ROWS
from cuepost.adapters.storage.tables import accounts
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.access import Account
from cuepost.ports.store import GaveWay, Manner
from tests.support.records import Records

PATIENCE_SECONDS = 10
THAT_CAN_WAIT = [Manner.REPEATABLE, Manner.YIELDING]


class Expecting(NoHandover):
    """Counts what is being accepted, as a dispatcher does."""

    def __init__(self) -> None:
        self.coming = 0

    def make_way(self) -> None:
        self.coming += 1

    def passed(self) -> None:
        self.coming -= 1

    def is_expecting(self) -> bool:
        return self.coming > 0


@pytest.fixture
def handover(sqlite_store: SqliteStore) -> Expecting:
    handover = Expecting()
    sqlite_store.handover = handover
    return handover


async def add(store: SqliteStore, manner: Manner, *accounts: Account) -> None:
    async with store.transaction(manner) as transaction:
        for account in accounts:
            await transaction.accounts.add(account)


async def stored(store: SqliteStore) -> set[UUID]:
    async with store.snapshot() as transaction:
        return {account.id for account in await transaction.accounts.all()}


async def begun(store: SqliteStore) -> None:
    with anyio.fail_after(PATIENCE_SECONDS):
        while store._changes._group is None:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("manner", Manner)
async def test_each_manner_keeps_a_change_that_nothing_disturbs(
    sqlite_store: SqliteStore, records: Records, handover: Expecting, manner: Manner
) -> None:
    account = records.account()
    await add(sqlite_store, manner, account)
    assert await stored(sqlite_store) == {account.id}
    assert handover.coming == 0


@pytest.mark.parametrize("manner", THAT_CAN_WAIT)
async def test_what_can_wait_does_not_ask_others_to_make_way(
    sqlite_store: SqliteStore, records: Records, handover: Expecting, manner: Manner
) -> None:
    async with sqlite_store.transaction(manner) as transaction:
        await transaction.accounts.add(records.account())
        assert not handover.is_expecting()


async def test_a_yielding_change_that_has_begun_is_given_up_for_what_comes(
    sqlite_store: SqliteStore, records: Records, handover: Expecting
) -> None:
    mine, theirs = [records.account() for _ in range(100)], records.account()
    async with asyncio.TaskGroup() as group:
        yielding = group.create_task(outcome(sqlite_store, *mine))
        await begun(sqlite_store)
        await add(sqlite_store, Manner.LASTING, theirs)
    assert isinstance(yielding.result(), GaveWay)
    assert await stored(sqlite_store) == {theirs.id}


async def outcome(store: SqliteStore, *accounts: Account) -> GaveWay | None:
    try:
        await add(store, Manner.YIELDING, *accounts)
    except GaveWay as error:
        return error
    return None


async def test_a_repeatable_change_is_not_given_up(
    sqlite_store: SqliteStore, records: Records, handover: Expecting
) -> None:
    mine, theirs = [records.account() for _ in range(100)], records.account()
    async with asyncio.TaskGroup() as group:
        group.create_task(add(sqlite_store, Manner.REPEATABLE, *mine))
        await begun(sqlite_store)
        await add(sqlite_store, Manner.LASTING, theirs)
    assert await stored(sqlite_store) == {theirs.id, *(account.id for account in mine)}


async def test_who_gives_way_takes_nobody_of_the_same_group_along(
    sqlite_store: SqliteStore, records: Records, handover: Expecting
) -> None:
    first, mine = records.account(), [records.account(), records.account()]
    async with asyncio.TaskGroup() as group:
        group.create_task(add(sqlite_store, Manner.LASTING, first))
        # The first one is being accepted all that time, so that this one begins and gives up.
        yielding = group.create_task(outcome(sqlite_store, *mine))
    assert isinstance(yielding.result(), GaveWay)
    assert await stored(sqlite_store) == {first.id}


@pytest.mark.parametrize(("rows", "is_kept"), [(MANY_ROWS - 1, False), (MANY_ROWS, True)])
async def test_who_has_written_many_rows_does_not_give_them_up(
    sqlite_store: SqliteStore, records: Records, handover: Expecting, rows: int, is_kept: bool
) -> None:
    many = [records.account() for _ in range(rows)]
    with suppress(GaveWay):
        async with sqlite_store.transaction(Manner.YIELDING) as transaction:
            assert isinstance(transaction, RecordsTransaction)
            await transaction._session.insert(accounts, [asdict(each) for each in many])
            handover.make_way()
            await transaction.accounts.add(records.account())
    assert len(await stored(sqlite_store)) == (rows + 1 if is_kept else 0)


@pytest.mark.parametrize("manner", THAT_CAN_WAIT)
async def test_others_have_their_turn_before_each_statement(
    sqlite_store: SqliteStore, records: Records, manner: Manner
) -> None:
    turns = 0

    async def take_turns() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with asyncio.TaskGroup() as group:
        other = group.create_task(take_turns())
        await anyio.lowlevel.checkpoint()
        async with sqlite_store.transaction(manner) as transaction:
            for _ in range(3):
                before = turns
                await transaction.accounts.add(records.account())
                assert turns > before
        other.cancel()
