"""Moving an account from one database to another."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from cuepost.domain.access import Account, AccountState


@dataclass(frozen=True, slots=True)
class Move:
    """`code` releases the copy; only the source database has it.

    `run_id` is the import that loads the account.
    """

    account_id: UUID
    digest: bytes
    started_at: datetime
    code: str | None = field(default=None, repr=False)
    run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one table without the account column, as values that JSON can represent."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]] = field(repr=False)


class CannotBeRead(ValueError):
    """A chunk does not fit the tables of this version."""


class AccountMoves(Protocol):
    @property
    def revision(self) -> str:
        """The revision of the schema that chunks belong to."""
        ...

    async def lock(self, account_id: UUID) -> Account | None:
        """Lock the account in any state, after all transactions that saw it live have ended."""
        ...

    async def get(self, account_id: UUID) -> Move | None: ...
    async def put(self, move: Move) -> None:
        """Store the move, replacing an earlier one of the account."""
        ...

    async def end(self, account_id: UUID) -> None: ...
    async def set_state(self, account_id: UUID, state: AccountState) -> None: ...
    async def park(self, account_id: UUID) -> None:
        """Its waiting deliveries are not due until `unpark`."""
        ...

    async def unpark(self, account_id: UUID) -> None: ...
    async def unparked(self, account_id: UUID) -> int:
        """How many of its deliveries are leased, or could be claimed."""
        ...

    async def has_deleted_endpoints(self, account_id: UUID) -> bool: ...
    def chunks(self, account_id: UUID) -> AsyncIterator[Chunk]:
        """Everything that the account owns; rows come after the rows that they refer to."""
        ...

    async def receive(self, account: Account) -> None:
        """Create the account, or overwrite what is left of an earlier copy."""
        ...

    async def load(self, account_id: UUID, chunk: Chunk) -> None:
        """Insert the rows, with waiting deliveries parked; raises CannotBeRead."""
        ...

    async def sealed_under(self, account_id: UUID) -> Collection[bytes]:
        """The ids of the master keys that seal something of the account."""
        ...

    async def is_loaded_by(self, account_id: UUID, run_id: UUID) -> bool:
        """If it is, no other import can begin before the transaction ends."""
        ...

    async def erase_some(self, account_id: UUID, rows: int, *, refusing: bool) -> bool:
        """As `Accounts.erase_some`, but the account and its move are kept.

        With `refusing` its keys are kept too, and its projects without their names, so that
        requests for them are refused with a reason.
        """
        ...
