"""What the records need of a connection, whichever engine it belongs to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from cuepost.adapters.storage.statements import Prepared

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Numbers:
    """Numbers of accounts and endpoints that this transaction has come across."""

    accounts: dict[UUID, int] = field(default_factory=dict)
    endpoints: dict[UUID, int] = field(default_factory=dict)
    # By endpoint, the worker to which what is booked for it may be leased at once.
    accepting: dict[int, UUID] = field(default_factory=dict)


class Session(Protocol):
    @property
    def dialect(self) -> str: ...

    @property
    def numbers(self) -> Numbers: ...

    @property
    def unhurried(self) -> "Session":
        """The same connection, for work on very many rows: nobody else is held up meanwhile."""
        ...

    async def all(self, statement: sa.Executable) -> Sequence[sa.Row[Any]]: ...

    async def run(self, statement: sa.Executable) -> int:
        """How many rows it touched."""
        ...

    async def fetch(self, statement: Prepared, **values: Any) -> Sequence[Any]:
        """The way of the busiest calls; rows have their columns by position."""
        ...

    async def insert(self, table: sa.Table, rows: Rows) -> None:
        """Many rows in few statements; all have the same keys."""
        ...

    async def insert_encoded(
        self, table: sa.Table, columns: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """As `insert`, with values as the driver takes them; for what is written all the time."""
        ...

    async def update_encoded(
        self,
        table: sa.Table,
        key: tuple[str, ...],
        changed: tuple[str, ...],
        rows: Sequence[tuple[Any, ...]],
    ) -> None:
        """As `update`, with encoded values: those that change and then the key."""
        ...

    async def delete_encoded(
        self, table: sa.Table, key: tuple[str, ...], rows: Sequence[tuple[Any, ...]]
    ) -> None:
        """As `delete`, with encoded keys."""
        ...

    async def update(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        """Many rows in one go: each names its key and the columns that change."""
        ...

    async def delete(self, table: sa.Table, key: Sequence[str], rows: Rows) -> None:
        """Many rows in one go, each by its key."""
        ...


async def first(session: Session, statement: sa.Executable) -> sa.Row[Any] | None:
    rows = await session.all(statement)
    return rows[0] if rows else None


def upsert(session: Session, table: sa.Table) -> postgresql.Insert | sqlite.Insert:
    """An insert that knows `on_conflict_…`; both engines spell it alike."""
    return postgresql.insert(table) if session.dialect == "postgresql" else sqlite.insert(table)
