"""What is peculiar to PostgreSQL: connections that break, locks, and a pool of them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import anyio
import asyncpg
import pytest
import sqlalchemy as sa

from cuepost.adapters.secret_box import AesGcmBox
from cuepost.adapters.storage import postgres, postgres_readiness
from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.postgres_readiness import Readiness
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.application.perform import Perform
from cuepost.domain.access import Account
from cuepost.ports.store import (
    CommitUnknown,
    Contention,
    Store,
    StoreRefused,
    StoreUnavailable,
    Transaction,
)
from cuepost.testing import START, RepeatableEntropy, VirtualClock
from cuepost.tuning import LEASE_SECONDS
from tests.support import core_statements
from tests.support.postgres import PostgresServer, StopMode, fresh_database
from tests.support.records import Records
from tests.support.silent_wire import silent_wire
from tests.support.store_rows import rows, run, snapshot_rows

LIMIT = 20
THIS_BACKEND = sa.text("SELECT pg_backend_pid()")
OPEN_TRANSACTIONS = sa.text(
    "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cuepost' "
    "AND datname = current_database() AND pid <> pg_backend_pid() AND xact_start IS NOT NULL"
)


async def add(store: Store, account: Account) -> None:
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)


async def accounts(store: Store) -> list[Account]:
    async with store.snapshot() as transaction:
        return await transaction.accounts.oldest(100)


def performing(store: Store) -> Perform:
    return Perform(store, VirtualClock(), AesGcmBox([bytes(32)], RepeatableEntropy("box")))


async def single_read_of(store: Store) -> list[Account]:
    return await performing(store).single_read(lambda transaction: transaction.accounts.oldest(100))


async def execute(transaction: Transaction, sql: str) -> None:
    assert isinstance(transaction, RecordsTransaction)
    await core_statements.run(transaction.session, sa.text(sql))


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as started:
        yield started


@pytest.fixture
async def private_store(server: PostgresServer) -> AsyncIterator[PostgresStore]:
    """On a server of its own, which may be stopped."""
    server.start()
    async with fresh_database(server.url) as url:
        store = PostgresStore(url)
        await store.migrate(START)
        yield store
        await store.close()
        server.start()


async def kill(store: PostgresStore, backend: int) -> None:
    await rows(store, sa.text(f"SELECT pg_terminate_backend({backend}, 10000)"))


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
async def test_a_restart_of_the_server_is_survived(
    server: PostgresServer, private_store: PostgresStore, mode: StopMode
) -> None:
    records = Records()
    before, after = records.account(), records.account()
    await add(private_store, before)
    async with AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(private_store.snapshot())

    server.restart(mode)

    await asyncio.wait_for(add(private_store, after), LIMIT)
    assert await accounts(private_store) == [before, after]
    await private_store.check()


@pytest.mark.parametrize("mode", ["fast", "immediate", "kill"])
async def test_a_question_after_a_restart_of_the_server_is_answered(
    server: PostgresServer, private_store: PostgresStore, mode: StopMode
) -> None:
    """That the connections have died is not noticed before the first of them is used."""
    account = Records().account()
    await add(private_store, account)
    async with AsyncExitStack() as stack:
        for _ in range(5):
            await stack.enter_async_context(private_store.snapshot())

    server.restart(mode)

    assert await asyncio.wait_for(single_read_of(private_store), LIMIT) == [account]


async def test_a_question_that_takes_too_long_is_not_asked_again(
    postgres_store: PostgresStore,
) -> None:
    tries = []

    async def ask(transaction: Transaction) -> None:
        tries.append(transaction)
        await execute(transaction, "SET statement_timeout = '10ms'")
        await execute(transaction, "SELECT pg_sleep(600)")

    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(performing(postgres_store).single_read(ask), LIMIT)
    assert len(tries) == 1


async def test_a_server_that_is_away_is_named_as_such(
    server: PostgresServer, private_store: PostgresStore
) -> None:
    server.stop()
    for work in (
        add(private_store, Records().account()),
        accounts(private_store),
        single_read_of(private_store),
        private_store.check(),
        private_store.prepare_days(START),
    ):
        with pytest.raises(StoreUnavailable):
            await asyncio.wait_for(work, LIMIT)
    server.start()
    assert await accounts(private_store) == []


async def test_a_connection_that_breaks_in_a_transaction_keeps_nothing(
    postgres_store: PostgresStore,
) -> None:
    async def break_off() -> None:
        async with postgres_store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            await transaction.accounts.add(Records().account())
            [row] = await core_statements.all_rows(transaction.session, THIS_BACKEND)
            await kill(postgres_store, row[0])
            await transaction.accounts.oldest(100)

    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(break_off(), LIMIT)
    assert await accounts(postgres_store) == []


async def test_a_connection_that_breaks_before_the_commit_keeps_nothing(
    postgres_store: PostgresStore,
) -> None:
    async def break_off() -> None:
        async with postgres_store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            await transaction.accounts.add(Records().account())
            [row] = await core_statements.all_rows(transaction.session, THIS_BACKEND)
            await kill(postgres_store, row[0])

    with pytest.raises(StoreUnavailable):
        await asyncio.wait_for(break_off(), LIMIT)
    assert await accounts(postgres_store) == []


async def test_a_commit_whose_result_is_lost_may_have_been_made(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute_it = asyncpg.Connection.execute

    async def lost(connection: Any, query: str, *values: Any, **more: Any) -> str:
        answer = await execute_it(connection, query, *values, **more)
        if query == "COMMIT":
            raise ConnectionResetError("the answer was lost")
        return answer

    monkeypatch.setattr(asyncpg.Connection, "execute", lost)
    with pytest.raises(CommitUnknown, match="the answer was lost"):
        await add(postgres_store, Records().account())
    monkeypatch.undo()
    assert len(await accounts(postgres_store)) == 1


async def test_a_commit_goes_on_although_its_caller_was_cancelled(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute_it = asyncpg.Connection.execute
    begun, may_go_on = asyncio.Event(), asyncio.Event()

    async def slow(connection: Any, query: str, *values: Any, **more: Any) -> str:
        if query == "COMMIT":
            begun.set()
            await may_go_on.wait()
        return await execute_it(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "execute", slow)
    async with asyncio.timeout(LIMIT):
        adding = asyncio.ensure_future(add(postgres_store, Records().account()))
        await begun.wait()
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        assert len(postgres_store._endings) == 1
        may_go_on.set()
        await postgres_store.close()
    monkeypatch.undo()
    assert (len(await accounts(postgres_store)), postgres_store._endings) == (1, set())


async def test_a_failed_statement_that_was_passed_over_is_not_taken_for_a_commit(
    postgres_store: PostgresStore,
) -> None:
    async def pass_over() -> None:
        async with postgres_store.transaction() as transaction:
            await transaction.accounts.add(Records().account())
            with pytest.raises(StoreRefused):
                await execute(transaction, "SELECT 1 / 0")

    with pytest.raises(StoreUnavailable, match="nothing of the transaction was kept"):
        await pass_over()
    assert await accounts(postgres_store) == []


@pytest.mark.parametrize("turns", [0, 1, 5, 20])
async def test_a_statement_that_is_cancelled_leaves_no_transaction_open(
    postgres_store: PostgresStore, turns: int
) -> None:
    started = anyio.Event()

    async def sleep() -> None:
        async with postgres_store.transaction() as transaction:
            await transaction.accounts.add(Records().account())
            started.set()
            await execute(transaction, "SELECT pg_sleep(600)")

    with anyio.fail_after(LIMIT):
        async with anyio.create_task_group() as group:
            group.start_soon(sleep)
            await started.wait()
            for _ in range(turns):
                await anyio.lowlevel.checkpoint()
            group.cancel_scope.cancel()
        while (await rows(postgres_store, OPEN_TRANSACTIONS))[0][0]:
            await anyio.lowlevel.checkpoint()
        assert await accounts(postgres_store) == []


async def test_who_waits_too_long_for_a_lock_may_try_again(postgres_store: PostgresStore) -> None:
    account = Records().account()
    await add(postgres_store, account)

    async def wait_for_lock() -> None:
        async with postgres_store.transaction() as transaction:
            await execute(transaction, "SET LOCAL lock_timeout = '10ms'")
            await transaction.accounts.lock(account.id)

    async with postgres_store.transaction() as transaction:
        await transaction.accounts.lock(account.id)
        with pytest.raises(Contention):
            await asyncio.wait_for(wait_for_lock(), LIMIT)


async def test_two_that_wait_for_one_another_are_parted(postgres_store: PostgresStore) -> None:
    records = Records()
    pair = [records.account(), records.account()]
    for account in pair:
        await add(postgres_store, account)
    both = asyncio.Barrier(2)

    async def cross(first: Account, second: Account) -> str:
        try:
            async with postgres_store.transaction() as transaction:
                await execute(transaction, "SET LOCAL deadlock_timeout = '10ms'")
                await transaction.accounts.lock(first.id)
                await both.wait()
                await transaction.accounts.lock(second.id)
        except Contention:
            return "contention"
        return "done"

    crossing = asyncio.gather(cross(*pair), cross(*reversed(pair)))
    ended = await asyncio.wait_for(crossing, LIMIT)
    assert sorted(ended) == ["contention", "done"]


async def test_a_pool_without_a_free_connection_says_so(migrated_database: str) -> None:
    store = PostgresStore(migrated_database, connections=1, timeout_seconds=0.01)
    async with store.snapshot():
        with pytest.raises(StoreUnavailable, match="became free"):
            await accounts(store)
    assert await accounts(store) == []
    await store.close()


async def test_connections_that_fell_silent_are_replaced(
    migrated_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them is waited for, and not each of them in turn."""
    monkeypatch.setattr(postgres, "BEGIN_TIMEOUT_SECONDS", 0.2)
    async with silent_wire(migrated_database) as (wire, url):
        store = PostgresStore(url)
        async with store.snapshot(), store.snapshot(), store.snapshot():
            assert wire.opened == 3
        wire.silence()
        assert await asyncio.wait_for(accounts(store), LIMIT) == []
        # The new one, and the one by which the driver cancels what it no longer waits for.
        assert wire.opened == 5
        await store.close()


async def test_idle_connections_are_closed(migrated_database: str) -> None:
    store = PostgresStore(f"{migrated_database}?application_name=idle", idle_seconds=0.05)
    async with store.snapshot(), store.snapshot(), store.snapshot():
        assert await connections(store) == 4
    async with asyncio.timeout(LIMIT):
        # The one that asks is used again and again.
        while await connections(store) > 1:
            pass
    await store.close()


async def connections(store: PostgresStore) -> int:
    counted = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'idle'"
    [row] = await snapshot_rows(store, sa.text(counted))
    return int(row[0])


async def test_errors_do_not_show_the_rows_themselves(postgres_store: PostgresStore) -> None:
    account = Records().account(name="canary")
    await add(postgres_store, account)
    with pytest.raises(Contention) as refused:
        await add(postgres_store, account)
    assert str(account.id) not in str(refused.value)

    no_number = sa.text("SELECT CAST(:canary AS int)").bindparams(canary="canary")
    with pytest.raises(StoreRefused, match="22P02") as failed:
        await run(postgres_store, no_number)
    assert "canary" not in str(failed.value)


async def test_a_url_that_leads_nowhere_is_named_as_such(postgres_url: str) -> None:
    store = PostgresStore(postgres_url.rpartition("/")[0] + "/no_such_database")
    with pytest.raises(StoreUnavailable, match="no_such_database"):
        await store.open(START)
    await store.close()


async def test_who_hangs_in_a_transaction_loses_it_soon_after_a_worker_would_lose_its_lease(
    postgres_store: PostgresStore,
) -> None:
    [(seconds,)] = await rows(
        postgres_store,
        sa.text(
            "SELECT setting::int / 1000 FROM pg_settings "
            "WHERE name = 'idle_in_transaction_session_timeout'"
        ),
    )
    assert LEASE_SECONDS < seconds < 2 * LEASE_SECONDS


async def test_who_asks_often_whether_it_is_ready_makes_it_write_once(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    execute = asyncpg.Connection.execute

    async def overheard(connection: Any, query: str, *values: Any, **more: Any) -> Any:
        asked.append(query)
        return await execute(connection, query, *values, **more)

    monkeypatch.setattr(asyncpg.Connection, "execute", overheard)
    monkeypatch.setattr(postgres_readiness, "PROOF_SECONDS", 3_600.0)
    monkeypatch.setattr(postgres_store, "_readiness", Readiness(postgres_store._asked))
    await asyncio.gather(*(postgres_store.check() for _ in range(5)))
    for _ in range(5):
        await postgres_store.check()
    assert sum("pg_logical_emit_message" in query for query in asked) == 1


async def test_a_locked_table_is_not_ready_for_anybody(
    postgres_store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_store, "_readiness", Readiness(postgres_store._asked))
    async with postgres_store.transaction() as transaction:
        await execute(transaction, "LOCK TABLE queue IN ACCESS EXCLUSIVE MODE")
        reported = await asyncio.wait_for(
            asyncio.gather(*(postgres_store.check() for _ in range(3)), return_exceptions=True),
            LIMIT,
        )
        assert {type(each) for each in reported} == {StoreUnavailable}
        assert "a table is locked" in str(reported[0])
    await postgres_store.check()
