"""A look into the tables, past the records."""

from collections.abc import Sequence
from typing import Any, TypeAlias

import sqlalchemy as sa

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.tables import deliveries, endpoints, metadata, queue
from cuepost.adapters.storage.transaction import RecordsTransaction

AnyStore: TypeAlias = SqliteStore | PostgresStore
# The others are about the processes at work, and say nothing of any account.
OWNED_TABLES = [
    table
    for table in metadata.sorted_tables
    if "account_id" in table.c or table.name in {"accounts", "api_keys"}
]
_EMPTY_ALL = sa.text(
    "WITH "
    + ", ".join(f"{each.name}_gone AS (DELETE FROM {each.name})" for each in metadata.sorted_tables)
    + " SELECT 1"
)


async def rows(store: AnyStore, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await transaction._session.all(statement)


async def snapshot_rows(store: AnyStore, statement: sa.Executable) -> Sequence[sa.Row[Any]]:
    """Beside a service at work, which would wait for a transaction to end."""
    async with store.snapshot() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await transaction._session.all(statement)


async def run(store: AnyStore, statement: sa.Executable) -> int:
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        return await transaction._session.run(statement)


async def empty(store: AnyStore) -> None:
    """Every table. PostgreSQL is told in one statement, since its hundreds of tests wait for it."""
    async with store.transaction() as transaction:
        assert isinstance(transaction, RecordsTransaction)
        if isinstance(store, PostgresStore):
            await transaction._session.run(_EMPTY_ALL)
            return
        for table in metadata.sorted_tables:
            await transaction._session.run(sa.delete(table))


async def row_counts(store: AnyStore) -> dict[str, int]:
    """How many rows each table has; those that are empty are left out."""
    counted = {
        table.name: await rows(store, sa.select(sa.func.count()).select_from(table))
        for table in metadata.sorted_tables
    }
    return {name: found[0][0] for name, found in counted.items() if found[0][0]}


async def contradictions(store: AnyStore) -> list[sa.Row[Any]]:
    """Live deliveries that are not queued, and queued ones that have ended or do not exist."""
    queued = sa.exists().where(
        queue.c.account_id == deliveries.c.account_id, queue.c.delivery_id == deliveries.c.id
    )
    cleared_away = sa.exists().where(
        endpoints.c.account_id == deliveries.c.account_id,
        endpoints.c.id == deliveries.c.webhook_id,
        endpoints.c.deleted_at.is_not(None),
    )
    lost = sa.select(deliveries).where(deliveries.c.final_status.is_(None), ~queued, ~cleared_away)
    live = sa.exists().where(
        deliveries.c.account_id == queue.c.account_id,
        deliveries.c.id == queue.c.delivery_id,
        deliveries.c.webhook_id == queue.c.webhook_id,
        deliveries.c.event_id == queue.c.event_id,
        deliveries.c.final_status.is_(None),
    )
    return [*await rows(store, lost), *await rows(store, sa.select(queue).where(~live))]
