"""The connection that the records use, the same for both engines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from cuepost.adapters.storage.encoding import Encoding
from cuepost.adapters.storage.sql import Dialect, Sql

Rows = Sequence[Mapping[str, Any]]
EncodedRows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Cache of account and endpoint numbers that this transaction has read."""

    accounts: dict[UUID, int] = field(default_factory=dict)
    endpoints: dict[UUID, int] = field(default_factory=dict)
    # By endpoint, the worker to which its new deliveries may be leased at once.
    accepting: dict[int, UUID] = field(default_factory=dict)
    # Of accounts whose state is locked until this transaction ends.
    states: dict[UUID, str] = field(default_factory=dict)


class StoreSession(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    @property
    def encoding(self) -> Encoding: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def uses_server_clock(self) -> bool:
        """Whether several processes share this database, and thus use its clock."""
        ...

    @property
    def offloaded(self) -> "StoreSession":
        """The same connection, for statements on very many rows: they do not block the loop."""
        ...

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        """Rows with their columns by position."""
        ...

    async def execute(self, statement: Sql, **values: Any) -> int:
        """The number of affected rows."""
        ...

    async def insert(self, table: str, rows: Rows) -> None:
        """Inserts many rows with few statements; all rows have the same columns."""
        ...

    async def update(self, table: str, key: Sequence[str], rows: Rows) -> None:
        """Updates many rows at once; each row has its key and the columns that change."""
        ...

    async def delete(self, table: str, key: Sequence[str], rows: Rows) -> None:
        """Deletes many rows at once, each by its key."""
        ...

    async def insert_encoded(self, table: str, columns: tuple[str, ...], rows: EncodedRows) -> None:
        """As `insert`, with values in the driver's form; for the hot path."""
        ...

    async def update_encoded(
        self, table: str, key: tuple[str, ...], changed: tuple[str, ...], rows: EncodedRows
    ) -> None:
        """As `update`, with encoded values: the changed columns, then the key."""
        ...

    async def accumulate_encoded(
        self, table: str, key: tuple[str, ...], counted: tuple[str, ...], rows: EncodedRows
    ) -> None:
        """Rows with their key first: new ones, or numbers to add to those that are there."""
        ...

    async def delete_encoded(self, table: str, key: tuple[str, ...], rows: EncodedRows) -> None:
        """As `delete`, with encoded keys."""
        ...


class Records:
    """Reads and writes one kind of record."""

    def __init__(self, session: StoreSession) -> None:
        self._session = session
