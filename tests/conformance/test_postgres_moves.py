"""On PostgreSQL a move waits for transactions that have seen the account live."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID

import pytest

from cuepost.adapters.storage.postgres import PostgresStore
from cuepost.adapters.storage.sql import Sql
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.store import Contention, Transaction
from tests.support.records import Records

LIMIT = 30
IMPATIENT = Sql(postgresql="SELECT set_config('lock_timeout', '10ms', true)")

Look = Callable[[Transaction, UUID], Awaitable[Any]]
LOOKS: dict[str, Look] = {
    "a change": lambda transaction, account_id: transaction.accounts.not_live([account_id]),
    "a booking": lambda transaction, account_id: transaction.endpoints.subscribers([account_id]),
    "a retry": lambda transaction, account_id: transaction.accounts.hold(account_id),
}


@pytest.mark.parametrize("look", LOOKS)
async def test_a_move_begins_after_what_goes_on(
    postgres_store: PostgresStore, records: Records, look: str
) -> None:
    account = records.account()
    async with postgres_store.transaction() as transaction:
        await transaction.accounts.add(account)
        await transaction.endpoints.add(records.endpoint(account.id), records.secret())

    async def lock() -> None:
        async with postgres_store.transaction() as transaction:
            assert isinstance(transaction, RecordsTransaction)
            await transaction.session.fetch(IMPATIENT)
            await transaction.moves.lock(account.id)

    async with postgres_store.transaction() as transaction:
        await LOOKS[look](transaction, account.id)
        with pytest.raises(Contention):
            await asyncio.wait_for(lock(), LIMIT)
    await asyncio.wait_for(lock(), LIMIT)
