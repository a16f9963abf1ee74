"""Checks at the start whether the pooler behaves as the settings say.

Two clients that are connected at the same time have two server connections, unless a pooler assigns
them by transaction. In that case, the second client's transaction gets the first client's server
connection, and the first client's next transaction runs on another one.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

from cuepost.adapters.storage.pooler import Pooler, WrongPooler
from cuepost.adapters.storage.postgres_connecting import Driver, connect
from cuepost.adapters.storage.postgres_pool import (
    CLOSE_TIMEOUT_SECONDS,
    LOCK_TIMEOUT,
    SERVER_SETTINGS,
)
from cuepost.adapters.storage.postgres_session import translated

# Other clients of the pooler may interfere with a round.
ROUNDS = 5
_SERVER = "SELECT pg_backend_pid()"
_NOT_BY_SESSION = (
    "The pooler assigns server connections by transaction: set CUEPOST_DATABASE_POOLER=transaction "
    "and CUEPOST_DATABASE_DIRECT_URL, or the pooler's pool_mode to session."
)
_NOT_PREPARED = (
    "The pooler does not keep prepared statements: set CUEPOST_DATABASE_POOLER=transaction, or "
    "max_prepared_statements of PgBouncer 1.21 or newer."
)
_IGNORED = (
    "A pooler ignores the settings of new connections: set CUEPOST_DATABASE_POOLER to its "
    "pool_mode, session or transaction."
)


async def require_fitting(url: str, pooler: Pooler) -> None:
    with translated():
        if pooler is Pooler.NONE:
            async with _connected(url, server_settings=SERVER_SETTINGS) as driver:
                if await driver.fetchval("SHOW lock_timeout") != LOCK_TIMEOUT:
                    raise WrongPooler(_IGNORED)
        elif pooler is not Pooler.TRANSACTION:
            names = 10 if pooler is Pooler.TRANSACTION_PREPARED else 0
            for _ in range(ROUNDS):
                async with _connected(url, names) as first, _connected(url, names) as second:
                    await _compare(first, second, pooler)


async def _compare(first: Driver, second: Driver, pooler: Pooler) -> None:
    try:
        own = await first.fetchval(_SERVER)
        await second.execute("BEGIN")
        if await second.fetchval(_SERVER) == own:
            if pooler is Pooler.SESSION:
                raise WrongPooler(_NOT_BY_SESSION)
            await first.fetchval(_SERVER)
    except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError) as error:
        raise WrongPooler(_NOT_PREPARED) from error


@asynccontextmanager
async def _connected(url: str, names: int = 0, **options: Any) -> AsyncIterator[Driver]:
    """With `names=0`, statements are unnamed and used at once, which every pooler allows."""
    driver = await connect(url, statement_cache_size=names, **options)
    try:
        yield driver
    finally:
        await driver.close(timeout=CLOSE_TIMEOUT_SECONDS)
