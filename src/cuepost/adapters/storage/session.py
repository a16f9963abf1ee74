"""What the records need of a connection, whichever engine it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from cuepost.adapters.storage.sql import Dialect, Sql

Rows = Sequence[Mapping[str, Any]]
EncodedRows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of accounts and endpoints that this transaction has come across."""

    accounts: dict[UUID, int] = field(default_factory=dict)
    endpoints: dict[UUID, int] = field(default_factory=dict)
    # By endpoint, the worker to which what is booked for it may be leased at once.
    accepting: dict[int, UUID] = field(default_factory=dict)
    # Of accounts whose state is locked until this transaction ends.
    states: dict[UUID, str] = field(default_factory=dict)


class StoreSession(Protocol):
    @property
    def dialect(self) -> Dialect: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def keeps_time(self) -> bool:
        """Several processes share this database, and its clock."""
        ...

    @property
    def offloaded(self) -> "StoreSession":
        """The same connection, for statements on very many rows: they do not block the loop."""
        ...

    async def fetch(self, statement: Sql, **values: Any) -> Sequence[Any]:
        """Rows have their columns by position."""
        ...

    async def execute(self, statement: Sql, **values: Any) -> int:
        """How many rows it touched."""
        ...

    async def insert(self, table: str, rows: Rows) -> None:
        """Many rows in few statements; all have the same keys."""
        ...

    async def update(self, table: str, key: Sequence[str], rows: Rows) -> None:
        """Many rows in one go: each names its key and the columns that change."""
        ...

    async def delete(self, table: str, key: Sequence[str], rows: Rows) -> None:
        """Many rows in one go, each by its key."""
        ...

    async def insert_encoded(self, table: str, columns: tuple[str, ...], rows: EncodedRows) -> None:
        """As `insert`, with values as the driver takes them; for what is written all the time."""
        ...

    async def update_encoded(
        self, table: str, key: tuple[str, ...], changed: tuple[str, ...], rows: EncodedRows
    ) -> None:
        """As `update`, with encoded values: those that change and then the key."""
        ...

    async def delete_encoded(self, table: str, key: tuple[str, ...], rows: EncodedRows) -> None:
        """As `delete`, with encoded keys."""
        ...
