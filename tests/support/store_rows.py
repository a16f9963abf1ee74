"""A look into the tables, past the records."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import UUID

import sqlalchemy as sa

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.records.counts import Tally
from cuepost.adapters.storage.records.delivery_rows import ATTEMPT_COLUMNS, attempt_values
from cuepost.adapters.storage.session import account_numbers
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import (
    accounts,
    deliveries,
    endpoints,
    events,
    metadata,
    queue,
)
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.domain.attempt import Attempt
from cuepost.domain.delivery import CancelReason, Delivery, DeliveryStatus
from cuepost.ports.store import Transaction
from tests.support import core_statements
from tests.support.records import Records

AnyStore: TypeAlias = SqliteStore | PostgresStore
# The others are about the processes at work, and say nothing of any account.
OWNED_TABLES = [
    table
    for table in metadata.sorted_tables
    if {"account", "account_id"} & set(table.c.keys()) or table.name in {"accounts", "api_keys"}
]
_EMPTY_ALL = sa.text(
    "WITH "
    + ", ".join(f"{each.name}_gone AS (DELETE FROM {each.name})" for each in metadata.sorted_tables)
    + " SELECT 1"
)


async def rows(store: AnyStore, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await core_statements.all_rows(transaction.session, statement)


async def snapshot_rows(store: AnyStore, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
    """Beside a service at work, which would wait for a transaction to end."""
    async with store.snapshot() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await core_statements.all_rows(transaction.session, statement)


async def run(store: AnyStore, statement: sa.Executable) -> int:
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await core_statements.run(transaction.session, statement)


async def introduce(transaction: Transaction, *ids: UUID | tuple[UUID, UUID]) -> None:
    """Accounts, and endpoints by account and id, so that history may refer to them.

    Those that are there already stay as they are.
    """
    assert isinstance(transaction, RecordsTransaction)
    session, records = transaction.session, Records()
    keys = [each if isinstance(each, tuple) else (each, None) for each in dict.fromkeys(ids)]
    for account_id in dict.fromkeys(account_id for account_id, _ in keys):
        account = asdict(records.account(id=account_id))
        await core_statements.run(
            session,
            core_statements.upsert(session, accounts).values(account).on_conflict_do_nothing(),
        )
    for account_id, webhook_id in keys:
        if webhook_id is not None:
            endpoint = asdict(records.endpoint(account_id, id=webhook_id)) | {"events": ""}
            await core_statements.run(
                session,
                core_statements.upsert(session, endpoints)
                .values(endpoint)
                .on_conflict_do_nothing(),
            )


async def add_deliveries(transaction: Transaction, *made: Delivery) -> None:
    """With the accounts and endpoints that they refer to, and with their events."""
    await introduce(transaction, *((each.account_id, each.webhook_id) for each in made))
    assert isinstance(transaction, RecordsTransaction)
    session, records = transaction.session, Records()
    numbers = await account_numbers(session, {each.account_id for each in made})
    of_each = {
        each.event_id: {
            "account": numbers[each.account_id],
            "id": each.event_id,
            "type": each.event_type,
            "project_id": each.project_id,
            "occurred_at": each.created_at,
            "body": records.event(each.account_id).body,
        }
        for each in made
    }
    if of_each:
        adding = core_statements.upsert(session, events).values(list(of_each.values()))
        await core_statements.run(session, adding.on_conflict_do_nothing())
    await transaction.deliveries.add(made)


async def lease(store: AnyStore, worker: UUID, *delivery_ids: UUID, **more: Any) -> None:
    """These deliveries, or all that are live, are with this worker now."""
    chosen = queue.c.id.in_(delivery_ids) if delivery_ids else sa.true()
    values = {"status": DeliveryStatus.DELIVERING, "worker": worker} | more
    await run(store, sa.update(queue).where(chosen).values(values))


async def end(
    transaction: Transaction,
    delivery_id: UUID,
    status: DeliveryStatus,
    now: datetime,
    reason: CancelReason | None = None,
    **more: object,
) -> None:
    """A live delivery ends as after its last attempt; its attempts stay where they are.

    `more` are other columns with values of their own.
    """
    assert isinstance(transaction, RecordsTransaction)
    session = transaction.session
    both = [column.name for column in deliveries.c if column.name in queue.c]
    ended = {"status": status, "reason": reason, "finished_at": now} | more
    kept = [name for name in both if name not in ended]
    literals = [sa.literal(value, deliveries.c[name].type) for name, value in ended.items()]
    await core_statements.run(
        session,
        sa.insert(deliveries).from_select(
            [*kept, *ended],
            sa.select(*(queue.c[name] for name in kept), *literals).where(
                queue.c.id == delivery_id
            ),
        ),
    )
    [row] = await core_statements.all_rows(
        session, sa.select(queue).where(queue.c.id == delivery_id)
    )
    tally = Tally()
    tally.ended(row.account, row.endpoint, delivery_id, status, row.attempt_count)
    await tally.write(session)
    await core_statements.run(session, sa.delete(queue).where(queue.c.id == delivery_id))


def compact(path: Path) -> None:
    """Pages that migrations have left free are given back; a new file of a test has none."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("VACUUM")


async def empty(store: AnyStore) -> None:
    """Every table. PostgreSQL is told in one statement, since its hundreds of tests wait for it."""
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        if isinstance(store, PostgresStore):
            await core_statements.run(transaction.session, _EMPTY_ALL)
            return
        for table in metadata.sorted_tables:
            await core_statements.run(transaction.session, sa.delete(table))


async def row_counts(store: AnyStore) -> dict[str, int]:
    """How many rows each table has; those that are empty are left out."""
    counted = {
        table.name: await rows(store, sa.select(sa.func.count()).select_from(table))
        for table in metadata.sorted_tables
    }
    return {name: found[0][0] for name, found in counted.items() if found[0][0]}


async def contradictions(store: AnyStore) -> list[sa.Row[Any]]:
    """Deliveries that are live and have ended, or that no one could find an endpoint of."""
    ended = sa.exists().where(
        deliveries.c.account == queue.c.account, deliveries.c.id == queue.c.id
    )
    known = sa.exists().where(endpoints.c.number == queue.c.endpoint)
    return list(await rows(store, sa.select(queue).where(sa.or_(ended, ~known))))


def attempt_columns(attempt: Attempt) -> dict[str, Any]:
    """The columns of an attempt, as SQLAlchemy writes them."""
    return dict(zip(ATTEMPT_COLUMNS, attempt_values(attempt), strict=True))
