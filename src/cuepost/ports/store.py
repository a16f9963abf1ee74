"""The store: transactions over the records, on SQLite or PostgreSQL."""

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Protocol, TypeVar

from cuepost.ports.alerts import Alerts
from cuepost.ports.dispatch import DeliveryQueue, Outcomes
from cuepost.ports.history import Attempts, BulkRetries, Deliveries, DeliveryCounts, Events
from cuepost.ports.inboxes import Inboxes
from cuepost.ports.listeners import Listeners
from cuepost.ports.moves import AccountMoves
from cuepost.ports.people import (
    Invitations,
    PortalLinks,
    SecretReveals,
    Sessions,
    SignInAttempts,
    SignInLinks,
    Users,
)
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
from cuepost.ports.service_state import ServiceState
from cuepost.ports.telemetry import Backlog


class StoreError(Exception):
    """The database failed or refused; nothing of the transaction was kept, except perhaps for
    CommitUnknown. `sqlstate` is the error code of the database, if there is one.
    """

    def __init__(self, message: str = "", sqlstate: str = "-") -> None:
        super().__init__(message)
        self.sqlstate = sqlstate


class StoreRefused(StoreError):
    """The database refuses the statement or its data, and would refuse them again."""


class StoreUnavailable(StoreError):
    """The database cannot be reached now; nothing of the transaction was kept."""


class CommitUnknown(StoreUnavailable):
    """The connection was lost during the commit, so the transaction may have been kept."""


class ConnectionDied(StoreUnavailable):
    """The connection to the database was closed, for example by a restart; another may work."""


class Contention(StoreError):
    """Another transaction interfered; nothing was kept, and the transaction can be retried."""


class KeyTaken(Contention):
    """A row with the same key exists.

    If the change checks for the row first, it can be retried, because another transaction may have
    added the row. The same insert would fail again.
    """


class Priority(Enum):
    """Which writes of the hot path come first, and what they need of the store."""

    INGEST = auto()
    """A caller waits for it. It is synced to disk when it returns."""
    BACKGROUND = auto()
    """Claims and results. After a power cut they are repeated, so SQLite does not sync them.

    PostgreSQL does, because the database can fail while the workers continue.
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
    def invitations(self) -> Invitations: ...
    @property
    def portal_links(self) -> PortalLinks: ...
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
    def counts(self) -> DeliveryCounts: ...
    @property
    def alerts(self) -> Alerts: ...
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
    def service_state(self) -> ServiceState: ...
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
        """For the hot path: the store may run several actions in one transaction.

        The action begins when it is its turn. It may be run more than once, each time in a new
        transaction, so it must have no effects besides its writes and its result. If the caller is
        cancelled before the action begins, nothing is written.
        """
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        """A read-only transaction; it never waits for a writer."""
        ...

    def single_read(self) -> AbstractAsyncContextManager[Transaction]:
        """For one statement: a second one may see a later state.

        Only this method raises ConnectionDied: nothing was changed, so the read can be retried.
        """
        ...

    async def check(self) -> None:
        """Raise StoreUnavailable unless the store answers and its schema is the current one."""
        ...

    async def prepare_days(self, now: datetime) -> None:
        """Create the partitions of the coming days, if the database has any."""
        ...


class Replica(Protocol):
    """A copy of the store that may be a little behind."""

    async def lag(self) -> timedelta | None:
        """How far the replica is behind; None while it cannot be read."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]: ...

    def failed(self, error: StoreError) -> None:
        """Called when a read from the replica has failed."""
        ...
