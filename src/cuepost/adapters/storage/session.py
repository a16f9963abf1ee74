"""The connection that the records use, the same for both engines.

History refers to accounts and endpoints by numbers; a session keeps those that it has read.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.row_writes import Row, RowWrite, row_write, tuples
from cuepost.adapters.storage.sql import Dialect, Sql

Rows = Sequence[Mapping[str, Any]]
_ACCOUNTS = Sql("SELECT id, number FROM accounts WHERE id IN :ids")
_ENDPOINTS = Sql("SELECT id, number FROM endpoints WHERE account_id IN :accounts AND id IN :ids")
_OF_ACCOUNT = Sql(
    """
    SELECT accounts.number, endpoints.number, endpoints.id, endpoints.deleted_at IS NOT NULL
    FROM accounts LEFT JOIN endpoints ON endpoints.account_id = accounts.id
    WHERE accounts.id = :account
    """
)
_MISSING = 0
"""No account and no endpoint has this number, so a search for it finds nothing."""


@dataclass(frozen=True, slots=True)
class Numbers:
    """Cache of account and endpoint numbers that this transaction has read."""

    accounts: dict[UUID, int] = field(default_factory=dict)
    endpoints: dict[UUID, int] = field(default_factory=dict)
    # By endpoint, the worker to which its new deliveries may be leased at once.
    accepting: dict[int, UUID] = field(default_factory=dict)
    # Of accounts whose state is locked until this transaction ends.
    states: dict[UUID, str] = field(default_factory=dict)


class StoreSession(ABC):
    dialect: Dialect
    numbers: Numbers
    outbox: Outbox
    # Whether several processes share this database, and thus use its clock.
    uses_server_clock: bool

    @property
    @abstractmethod
    def offloaded(self) -> "StoreSession":
        """The same connection, for statements on very many rows: they do not block the loop."""

    @abstractmethod
    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        """Rows with their columns by position."""

    @abstractmethod
    async def execute(self, statement: Sql, **values: Any) -> int:
        """The number of affected rows."""

    @abstractmethod
    async def write(self, to: RowWrite, rows: Sequence[Row]) -> Sequence[Any]:
        """Writes many rows with few statements; returns what `to` says, otherwise nothing."""

    async def insert(self, table: str, rows: Rows) -> None:
        """All rows have the same columns."""
        if rows:
            columns = tuple(rows[0])
            await self.write(row_write("insert", table, columns), tuples(columns, rows))

    async def update(self, table: str, key: tuple[str, ...], rows: Rows) -> None:
        """Each row has its key and the columns that change."""
        if rows:
            columns = tuple(rows[0])
            await self.write(row_write("update", table, columns, key), tuples(columns, rows))

    async def delete(self, table: str, key: tuple[str, ...], rows: Rows) -> None:
        """Each row is deleted by its key."""
        if rows:
            await self.write(row_write("delete", table, key, key), tuples(key, rows))


@dataclass(eq=False, repr=False)
class Records:
    """Reads and writes one kind of record."""

    _session: StoreSession


@dataclass(frozen=True, slots=True)
class AccountNumbers:
    """The numbers of an account and all its endpoints, including deleted ones."""

    account: int
    endpoint_of: dict[UUID, int]
    webhook_of: dict[int, UUID]
    deleted: frozenset[int]

    def endpoint(self, webhook_id: UUID) -> int:
        """For an unknown endpoint, a number that no delivery has."""
        return self.endpoint_of.get(webhook_id, _MISSING)


async def numbers_of(session: StoreSession, account_id: UUID) -> AccountNumbers:
    rows = await session.fetch(_OF_ACCOUNT, account=account_id)
    known = [(endpoint, webhook_id) for _, endpoint, webhook_id, _ in rows if webhook_id]
    return AccountNumbers(
        account=rows[0][0] if rows else _MISSING,
        endpoint_of={webhook_id: endpoint for endpoint, webhook_id in known},
        webhook_of=dict(known),
        deleted=frozenset(endpoint for _, endpoint, _, is_deleted in rows if is_deleted),
    )


async def account_number(session: StoreSession, account_id: UUID) -> int:
    return (await account_numbers(session, [account_id])).get(account_id, _MISSING)


async def account_numbers(session: StoreSession, ids: Collection[UUID]) -> dict[UUID, int]:
    known = session.numbers.accounts
    unknown = [each for each in dict.fromkeys(ids) if each not in known]
    if unknown:
        known.update(await session.fetch(_ACCOUNTS, ids=unknown))
    return known


async def endpoint_numbers(
    session: StoreSession, keys: Iterable[tuple[UUID, UUID]]
) -> dict[UUID, int]:
    """`keys` are pairs of account and endpoint."""
    known = session.numbers.endpoints
    unknown = {key for key in keys if key[1] not in known}
    if unknown:
        account_ids, ids = zip(*unknown, strict=True)
        known.update(await session.fetch(_ENDPOINTS, accounts=set(account_ids), ids=ids))
    return known
