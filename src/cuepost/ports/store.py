"""The store: transactions over the records, on whichever database stands behind them."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol, TypeVar

from cuepost.ports.dispatch import DeliveryQueue, Outcomes
from cuepost.ports.history import Attempts, BulkRetries, Deliveries, Events
from cuepost.ports.inboxes import Inboxes
from cuepost.ports.listeners import Listeners
from cuepost.ports.moves import AccountMoves
from cuepost.ports.people import SecretReveals, Sessions, SignInAttempts, SignInLinks, Users
from cuepost.ports.records import (
    Accounts,
    Audit,
    Endpoints,
    Idempotency,
    Keys,
    Projects,
    Reports,
)
from cuepost.ports.retention import Retention
from cuepost.ports.sealed import SealedValues
from cuepost.ports.telemetry import Backlog


class StoreError(Exception):
    """The database did not do what it was asked; nothing of the transaction was kept.

    Only of a commit whose answer was lost is that not known. `sqlstate` is what the database calls
    the error, if it said anything.
    """

    def __init__(self, message: str = "", sqlstate: str = "-") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class StoreRefused(StoreError):
    """The database does not take the statement or its data, and would refuse them again."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now; nothing of the transaction was kept."""


class CommitUnknown(StoreUnavailable):
    """The database was lost while it committed, so the transaction may have been kept."""


class ConnectionDied(StoreUnavailable):
    """This connection to the database has ended; another may do, as after a restart."""


class Contention(StoreError):
    """Another transaction was in the way; nothing was kept, and the same work may be done again."""


class KeyTaken(Contention):
    """A row with the same key is there already.

    Another transaction may have added it, so a change that looks first may be done again; the very
    same rows are refused again.
    """


class Priority(Enum):
    """Which writes of the hot path come first, and what they need of the store."""

    INGEST = auto()
    """A caller waits for it. It is on the disk when it is over, and fails rather than wait for long
    until others release a row.
    """
    BACKGROUND = auto()
    """Claims and results. After a power cut they are repeated, so they need not wait for the disk.

    Where the store can fail while its users live on, they are on the disk all the same.
    """


class Transaction(Protocol):
    """Committed as a whole when its block ends, rolled back when the block raises."""

    @property
    def accounts(self) -> Accounts: ...
    @property
    def keys(self) -> Keys: ...
    @property
    def users(self) -> Users: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def sign_in_links(self) -> SignInLinks: ...
    @property
    def sign_in_attempts(self) -> SignInAttempts: ...
    @property
    def secret_reveals(self) -> SecretReveals: ...
    @property
    def inboxes(self) -> Inboxes: ...
    @property
    def projects(self) -> Projects: ...
    @property
    def endpoints(self) -> Endpoints: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def events(self) -> Events: ...
    @property
    def deliveries(self) -> Deliveries: ...
    @property
    def attempts(self) -> Attempts: ...
    @property
    def queue(self) -> DeliveryQueue: ...
    @property
    def outcomes(self) -> Outcomes: ...
    @property
    def bulk_retries(self) -> BulkRetries: ...
    @property
    def listeners(self) -> Listeners: ...
    @property
    def idempotency(self) -> Idempotency: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def retention(self) -> Retention: ...
    @property
    def backlog(self) -> Backlog: ...
    @property
    def sealed(self) -> SealedValues: ...
    @property
    def moves(self) -> AccountMoves: ...


T = TypeVar("T")
Action = Callable[[Transaction], Awaitable[T]]


class Store(Protocol):
    def transaction(self) -> AbstractAsyncContextManager[Transaction]:
        """For changes. On the embedded store one runs at a time, across all processes."""
        ...

    async def write(self, action: Action[T], priority: Priority) -> T:
        """For the hot path: in one transaction with others of its kind, if the engine gains by it.

        The action begins when it is its turn. It may begin more than once, each time in a new
        transaction, so it leaves nothing behind but what it writes and returns. Whoever is
        cancelled before it begins has not written anything.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        """For reading alone; never waits for a writer."""
        ...

    def single_read(self) -> AbstractAsyncContextManager[Transaction]:
        """For a single question: a second one may be answered as of a later moment.

        Here alone ConnectionDied is told apart: nothing was changed, so it may be asked again.
        """
        ...

    async def check(self) -> None:
        """Raise StoreUnavailable unless the store answers and its schema is the current one."""
        ...

    async def prepare_days(self, now: datetime) -> None:
        """Make room for the history of the coming days, where the engine needs that."""
        ...


class Replica(Protocol):
    """A copy of the store that may be a little behind."""

    async def lag(self) -> timedelta | None:
        """None while it cannot be read."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]: ...

    def failed(self, error: StoreError) -> None:
        """Told when a read of it failed."""
        ...
