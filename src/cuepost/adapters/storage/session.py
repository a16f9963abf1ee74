"""The connection that the records use, the same for both engines."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.row_writes import Row, RowWrite, row_write, tuples
from cuepost.adapters.storage.sql import Dialect, Sql

Rows = Sequence[Mapping[str, Any]]


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


class Records:
    """Reads and writes one kind of record."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
