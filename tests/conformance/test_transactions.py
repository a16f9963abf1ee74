"""Transactions: all or nothing, readers that never wait, and callers that give up half-way."""

import asyncio

import anyio
import pytest

from cuepost.domain.access import Account
from cuepost.ports.store import Store
from tests.support.records import Records
from tests.support.store_rows import AnyStore

LIMIT = 20
LOOKS = 500


async def accounts(store: Store) -> list[Account]:
    async with store.snapshot() as transaction:
        return await transaction.accounts.oldest(100)


async def add(store: Store, *added: Account) -> None:
    async with store.transaction() as transaction:
        for account in added:
            await transaction.accounts.add(account)


async def wait_for_accounts(store: Store, expected: list[Account]) -> None:
    """On PostgreSQL a cancelled caller returns before its commit has ended."""
    for _ in range(LOOKS):
        if await accounts(store) == expected:
            return
    assert await accounts(store) == expected


async def take(turns: int) -> None:
    """Let other tasks run for a number of turns of the event loop."""
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()


async def test_what_a_transaction_wrote_is_there_when_its_block_has_ended(
    store: AnyStore, records: Records
) -> None:
    one, other = records.account(), records.account()
    await add(store, one, other)
    assert await accounts(store) == [one, other]


async def test_a_transaction_reads_what_it_wrote(store: AnyStore, records: Records) -> None:
    account = records.account()
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        assert await transaction.accounts.get(account.id) == account


async def test_nothing_is_kept_when_the_block_raises(store: AnyStore, records: Records) -> None:
    kept = records.account()
    await add(store, kept)

    async def fail() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.add(records.account())
            await transaction.accounts.set_access(kept.id, False)
            raise LookupError("on purpose")

    with pytest.raises(LookupError, match="on purpose"):
        await fail()
    assert await accounts(store) == [kept]
    await add(store)


@pytest.mark.parametrize("error", [TimeoutError, OSError, ConnectionError])
async def test_an_error_of_the_block_itself_is_not_taken_for_one_of_the_store(
    store: AnyStore, error: type[OSError]
) -> None:
    for begin in (store.transaction, store.snapshot):
        with pytest.raises(error, match="my own"):
            async with begin():
                raise error("my own")


async def test_a_snapshot_does_not_see_what_is_not_committed(
    store: AnyStore, records: Records
) -> None:
    kept = records.account()
    await add(store, kept)
    async with store.transaction() as transaction:
        await transaction.accounts.add(records.account())
        assert await asyncio.wait_for(accounts(store), LIMIT) == [kept]


async def test_a_snapshot_stays_as_it_was(store: AnyStore, records: Records) -> None:
    early, late = records.account(), records.account()
    await add(store, early)
    async with store.snapshot() as transaction:
        assert await transaction.accounts.oldest(100) == [early]
        await asyncio.wait_for(add(store, late), LIMIT)
        assert await transaction.accounts.oldest(100) == [early]
        assert await transaction.accounts.get(late.id) is None
    assert await accounts(store) == [early, late]


async def test_snapshots_do_not_wait_for_one_another(store: AnyStore, records: Records) -> None:
    account = records.account()
    await add(store, account)
    async with store.snapshot(), store.snapshot(), store.snapshot():
        assert await asyncio.wait_for(accounts(store), LIMIT) == [account]


async def test_more_readers_than_connections_all_get_their_turn(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    await add(store, account)
    found = await asyncio.wait_for(asyncio.gather(*(accounts(store) for _ in range(50))), LIMIT)
    assert found == [[account]] * 50


async def test_nothing_can_be_written_in_a_snapshot(store: AnyStore, records: Records) -> None:
    account = records.account()
    with pytest.raises(Exception, match=r"read-?only"):
        async with store.snapshot() as transaction:
            await transaction.accounts.add(account)
    await add(store, account)
    assert await accounts(store) == [account]


async def test_transactions_at_the_same_time_lose_nothing(
    store: AnyStore, records: Records
) -> None:
    many = [records.account() for _ in range(40)]
    await asyncio.wait_for(asyncio.gather(*(add(store, each) for each in many)), LIMIT)
    assert await accounts(store) == many


async def test_a_cancelled_transaction_keeps_nothing_and_leaves_the_store_usable(
    store: AnyStore, records: Records
) -> None:
    inside = anyio.Event()

    async def wait_inside() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.add(records.account())
            inside.set()
            await anyio.sleep_forever()

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            group.start_soon(wait_inside)
            await inside.wait()
            group.cancel_scope.cancel()

    account = records.account()
    await asyncio.wait_for(add(store, account), LIMIT)
    assert await accounts(store) == [account]


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13, 21, 34])
async def test_a_transaction_that_is_cancelled_at_any_moment_is_kept_whole_or_not_at_all(
    store: AnyStore, records: Records, turns: int
) -> None:
    pair = [records.account(), records.account()]
    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            group.start_soon(add, store, *pair)
            await take(turns)
            group.cancel_scope.cancel()

    assert await accounts(store) in ([], pair)
    account = records.account()
    await asyncio.wait_for(add(store, account), LIMIT)
    assert (await accounts(store))[-1] == account


async def test_a_transaction_that_is_cancelled_while_it_commits_is_kept(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    with anyio.move_on_after(LIMIT) as scope:
        async with store.transaction() as transaction:
            await transaction.accounts.add(account)
            # Writes the row, so that only the commit is left.
            await transaction.accounts.get(account.id)
            scope.cancel()

    assert scope.cancelled_caught
    await wait_for_accounts(store, [account])
    await asyncio.wait_for(add(store, records.account()), LIMIT)


async def test_a_commit_whose_task_is_cancelled_twice_goes_on(
    store: AnyStore, records: Records
) -> None:
    account = records.account()

    async def write() -> None:
        async with store.transaction() as transaction:
            await transaction.accounts.add(account)
            await transaction.accounts.get(account.id)
            this = asyncio.current_task()
            assert this is not None
            this.cancel()
            asyncio.get_running_loop().call_soon(this.cancel)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(write())
        await asyncio.wait([task], timeout=LIMIT)

    assert task.cancelled()
    await wait_for_accounts(store, [account])


@pytest.mark.parametrize("turns", [0, 1, 2, 3, 5, 8, 13])
async def test_a_snapshot_that_is_cancelled_at_any_moment_leaves_its_connection_usable(
    store: AnyStore, records: Records, turns: int
) -> None:
    account = records.account()
    await add(store, account)
    with anyio.fail_after(LIMIT):
        for _ in range(10):
            async with anyio.create_task_group() as group:
                group.start_soon(accounts, store)
                await take(turns)
                group.cancel_scope.cancel()
        found = await asyncio.gather(*(accounts(store) for _ in range(10)))
    assert found == [[account]] * 10


async def test_a_store_says_that_it_is_well(store: AnyStore) -> None:
    await store.check()
