"""An account on its way from one database to another."""

from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from cuepost.domain.access import Account, AccountState


@dataclass(frozen=True, slots=True)
class Move:
    """`code` releases the copy; only the database that the account leaves has it.

    `run_id` is the import that loads the account.
    """

    account_id: UUID
    digest: bytes
    started_at: datetime
    code: str | None = field(default=None, repr=False)
    run_id: UUID | None = None


@dataclass(frozen=True, slots=True)
class Chunk:
    """Rows of one table, without their account, in values that JSON has too."""

    table: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[Any]] = field(repr=False)


class CannotBeRead(ValueError):
    """A chunk does not fit the tables of this version."""


class AccountMoves(Protocol):
    @property
    def revision(self) -> str:
        """Of the schema that chunks belong to."""
        ...

    async def lock(self, account_id: UUID) -> Account | None:
        """Whatever its state is. Who has seen it live has committed by then."""
        ...

    async def get(self, account_id: UUID) -> Move | None: ...
    async def put(self, move: Move) -> None:
        """In the place of the account's former one."""
        ...

    async def end(self, account_id: UUID) -> None: ...
    async def set_state(self, account_id: UUID, state: AccountState) -> None: ...
    async def park(self, account_id: UUID) -> None:
        """What waits in the queue is not due before it is unparked."""
        ...

    async def unpark(self, account_id: UUID) -> None: ...
    async def unparked(self, account_id: UUID) -> int:
        """How many of its deliveries are with a worker, or could be claimed by one."""
        ...

    async def has_deleted_endpoints(self, account_id: UUID) -> bool: ...
    def chunks(self, account_id: UUID) -> AsyncIterator[Chunk]:
        """Everything that it owns. Rows come after those that they need."""
        ...

    async def receive(self, account: Account) -> None:
        """Make the account, or what is left of one that was here before, into this one."""
        ...

    async def load(self, account_id: UUID, chunk: Chunk) -> None:
        """What waits in the queue is parked; raises CannotBeRead."""
        ...

    async def sealed_under(self, account_id: UUID) -> Collection[bytes]:
        """The ids of the master keys that seal something of the account."""
        ...

    async def is_loaded_by(self, account_id: UUID, run_id: UUID) -> bool:
        """If it is, no other import begins before the transaction ends."""
        ...

    async def erase_some(self, account_id: UUID, rows: int, *, refusing: bool) -> bool:
        """As `Accounts.erase_some`, but the account and its move stay.

        If it goes on `refusing`, its keys stay too, and its projects without their names.
        """
        ...
