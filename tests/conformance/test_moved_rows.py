"""The rows of an account, from one database into another of either kind."""

import json
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest
import sqlalchemy as sa

from cuepost.adapters.storage.records.moved_rows import COLUMNS
from cuepost.adapters.storage.tables import metadata, queue
from cuepost.domain.access import Account, AccountState
from cuepost.domain.delivery import DeliveryStatus
from cuepost.domain.instants import compose, to_millis
from cuepost.ports.dispatch import Claim
from cuepost.ports.moves import CannotBeRead, Chunk, Move
from tests.support.records import Records
from tests.support.store_population import populate
from tests.support.store_rows import AnyStore, row_counts, rows

# Numbers are of one database alone.
NOT_MOVED = {"account", "account_id"}


def test_every_column_of_every_owned_table_is_moved() -> None:
    declared = {
        table.name: set(table.columns.keys()) - NOT_MOVED
        for table in metadata.sorted_tables
        if NOT_MOVED & set(table.columns.keys())
    }
    # A move is of the database that an account leaves or reaches.
    del declared["account_moves"]
    declared["endpoints"].remove("number")
    assert {table: set(columns) for table, columns in COLUMNS.items()} == declared


async def chunks_of(store: AnyStore, account_id: UUID) -> list[Chunk]:
    """As a file has them."""
    async with store.snapshot() as transaction:
        found = [chunk async for chunk in transaction.moves.chunks(account_id)]
    return [Chunk(each.table, each.columns, json.loads(json.dumps(each.rows))) for each in found]


async def load_all(store: AnyStore, account: Account, chunks: list[Chunk]) -> None:
    async with store.transaction() as transaction:
        await transaction.moves.receive(account)
        await transaction.moves.put(Move(account.id, b"digest", account.created_at))
    for chunk in chunks:
        async with store.transaction() as transaction:
            await transaction.moves.load(account.id, chunk)


async def erase(store: AnyStore, account_id: UUID) -> None:
    done = False
    while not done:
        async with store.transaction() as transaction:
            done = await transaction.accounts.erase_some(account_id, 1_000)


@pytest.mark.parametrize("source", ["sqlite", "postgresql"])
@pytest.mark.parametrize("target", ["sqlite", "postgresql"])
async def test_what_was_read_from_one_is_read_from_the_other(
    sqlite_store: AnyStore, postgres_store: AnyStore, records: Records, source: str, target: str
) -> None:
    await between(
        sqlite_store if source == "sqlite" else postgres_store,
        sqlite_store if target == "sqlite" else postgres_store,
        records,
    )


async def between(source: AnyStore, target: AnyStore, records: Records) -> None:
    # So that numbers are others there.
    await populate(target, records)
    others = await row_counts(target)
    made = await populate(source, records)
    counts = await row_counts(source)
    if source is target:
        counts = {name: counts[name] - others[name] for name in counts}
    before = await chunks_of(source, made.account.id)
    assert {chunk.table for chunk in before} == set(COLUMNS)
    if source is target:
        await erase(source, made.account.id)

    await load_all(target, made.account, before)

    assert await chunks_of(target, made.account.id) == before
    now = await row_counts(target)
    assert {name: now[name] - others.get(name, 0) for name in counts} == counts
    async with target.snapshot() as transaction:
        arrived = await transaction.accounts.get(made.account.id)
        assert arrived is not None
        assert arrived.state is AccountState.ARRIVING
        assert await transaction.projects.get(made.account.id, made.project.id) == made.project
        assert await transaction.deliveries.get(made.account.id, made.pending.id) == made.pending


async def test_a_parked_delivery_is_passed_over_and_shown_as_it_was(
    store: AnyStore, records: Records
) -> None:
    made = await populate(store, records)
    async with store.transaction() as transaction:
        # Else its window ends now.
        await transaction.projects.save([replace(made.project, access_expires_at=None)])
    now, worker = records.clock.now(), records.id()
    wanted = Claim(worker=worker, room=10, room_of=lambda _: 10, scan_after=0)
    async with store.transaction() as transaction:
        await transaction.moves.park(made.account.id)
        # A second time nothing changes.
        await transaction.moves.park(made.account.id)
        assert await transaction.moves.unparked(made.account.id) == 0
        await transaction.queue.register_worker(worker, now)
        assert (await transaction.queue.claim(wanted, now)).assignments == []
        shown = await transaction.deliveries.get(made.account.id, made.pending.id)
        assert shown == made.pending
    [queued] = [each for each in await chunks_of(store, made.account.id) if each.table == "queue"]
    assert made.pending.next_attempt_at is not None
    due_at = queued.rows[0][queued.columns.index("due_at")]
    assert due_at == to_millis(made.pending.next_attempt_at)

    async with store.transaction() as transaction:
        await transaction.moves.unpark(made.account.id)
        [claimed] = (await transaction.queue.claim(wanted, now)).assignments
        assert claimed.delivery_id == made.pending.id
        assert await transaction.moves.unparked(made.account.id) == 1
        # What is with a worker is left alone.
        await transaction.moves.park(made.account.id)
    [row] = await rows(store, sa.select(queue))
    assert (row.status, row.due_at) == (DeliveryStatus.DELIVERING, made.pending.next_attempt_at)
    async with store.transaction() as transaction:
        await transaction.queue.remove_worker(worker, now)


async def test_many_rows_of_a_table_come_in_order_and_all_of_them(
    store: AnyStore, records: Records
) -> None:
    account = records.account()
    events = [records.event(account.id) for _ in range(450)]
    async with store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.events.add(events)
    found = await chunks_of(store, account.id)
    assert [len(chunk.rows) for chunk in found] == [200, 200, 50]
    ids = [row[0] for chunk in found for row in chunk.rows]
    assert ids == sorted(str(event.id) for event in events)


async def test_history_of_days_long_past_finds_a_place(store: AnyStore, records: Records) -> None:
    account = records.account()
    event_id = compose(to_millis(records.clock.now()) - 45 * 86_400_000, 7)
    columns = COLUMNS["events"]
    values: dict[str, Any] = dict.fromkeys(columns) | {
        "id": str(event_id),
        "type": "project.completed",
        "occurred_at": 5,
        "body": "e30=",
    }
    await load_all(store, account, [Chunk("events", columns, [[values[each] for each in columns]])])
    async with store.snapshot() as transaction:
        found = await transaction.events.get(account.id, event_id)
        assert found is not None
        assert found.body == b"{}"


@pytest.mark.parametrize(
    "chunk",
    [
        Chunk("workers", ("id",), []),
        Chunk("inboxes", ("token",), []),
        Chunk("inboxes", COLUMNS["inboxes"], [["only one"]]),
        Chunk("inboxes", COLUMNS["inboxes"], [["token", "ok", "yesterday"]]),
        Chunk("events", COLUMNS["events"], [["no id", "project.completed", None, 5, "e30=", None]]),
        Chunk("events", COLUMNS["events"], [[str(UUID(int=7)), "project.gone", None, 5, "", None]]),
    ],
)
async def test_what_does_not_fit_is_refused(
    store: AnyStore, records: Records, chunk: Chunk
) -> None:
    account = records.account()
    with pytest.raises(CannotBeRead):
        await load_all(store, account, [chunk])
