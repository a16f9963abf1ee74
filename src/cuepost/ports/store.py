"""The store: transactions over the records, on whichever database stands behind them."""

from contextlib import AbstractAsyncContextManager
from datetime import datetime
from enum import Enum, auto
from typing import Protocol

from cuepost.ports.dispatch import DeliveryQueue, Outcomes
from cuepost.ports.history import Attempts, BulkRetries, Deliveries, Events
from cuepost.ports.inboxes import Inboxes
from cuepost.ports.listeners import Listeners
from cuepost.ports.people import SecretReveals, Sessions, SignInLinks, Users
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
from cuepost.ports.telemetry import Backlog


class StoreUnavailable(Exception):
    """The database cannot be reached now; nothing of the transaction was kept."""


class ConnectionDied(StoreUnavailable):
    """This connection to the database has ended; another may do, as after a restart."""


class Contention(Exception):
    """Another transaction was in the way; nothing was kept, and the same work may be done again."""


class KeyTaken(Contention):
    """A row with the same key is there already.

    Another transaction may have added it, so a change that looks first may be done again; the very
    same rows are refused again.
    """


class GaveWay(Contention):
    """What is being accepted went first, as the manner of this change allowed."""


class Manner(Enum):
    """What a change asks of the store beside being kept as a whole."""

    LASTING = auto()
    """When it is over, it is on the disk."""
    REPEATABLE = auto()
    """A power cut may undo it, with everything after it and nothing before: it is done once more.

    Where the store can fall while those who use it live on, it lasts all the same.
    """
    YIELDING = auto()
    """Repeatable, and where it is in the way of what is being accepted it may be given up."""
    IMPATIENT = auto()
    """It lasts, but rather than wait for long until others let go of a row it gives up."""

    @property
    def has_to_last(self) -> bool:
        return self not in (Manner.REPEATABLE, Manner.YIELDING)


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


class Store(Protocol):
    def transaction(
        self, manner: Manner = Manner.LASTING
    ) -> AbstractAsyncContextManager[Transaction]:
        """For changes. On the embedded store one runs at a time, across all processes."""
        ...

    def snapshot(self) -> AbstractAsyncContextManager[Transaction]:
        """For reading alone; never waits for a writer."""
        ...

    def glance(self) -> AbstractAsyncContextManager[Transaction]:
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
