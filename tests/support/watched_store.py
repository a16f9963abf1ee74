"""A store that is watched while it works, and that fails when it is told to."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

from cuepost.adapters.storage.outbox import Outbox
from cuepost.adapters.storage.session import Numbers
from cuepost.adapters.storage.sqlite import SqliteStore
from cuepost.adapters.storage.transaction import RecordsTransaction
from cuepost.ports.dispatch import Handover
from cuepost.ports.store import Action, Priority, StoreUnavailable, Transaction
from tests.support.store_rows import AnyStore

T = TypeVar("T")

Fault = Callable[[int], bool]


class Endless(BaseException):
    """So much is done that it will never come to an end."""


def never(_: int) -> bool:
    return False


@dataclass(slots=True)
class Watch:
    """Counts operations: each begin, statement and commit; `fails` says which of them do not work.

    `refuses` says which commits do not work, though everything before them did, and `loses` after
    which ones the answer is lost on its way back. More than `most` operations
    are taken for a loop without an end.
    """

    fails: Fault = never
    refuses: Fault = never
    loses: Fault = never
    operations: int = 0
    commits: int = 0
    in_progress: int = 0
    transactions: int = 0
    failed: int = 0
    most: float = float("inf")

    def working(self) -> "Working":
        return Working(self)

    def step(self) -> None:
        self.operations += 1
        if self.operations > self.most:
            raise Endless
        if self.fails(self.operations):
            self.failed += 1
            raise StoreUnavailable(f"operation {self.operations} was made to fail")

    def commit(self) -> None:
        self.commits += 1
        if self.refuses(self.commits):
            self.failed += 1
            raise StoreUnavailable(f"commit {self.commits} was made to fail")

    def committed(self) -> None:
        if self.loses(self.commits):
            self.failed += 1
            raise StoreUnavailable(f"the answer to commit {self.commits} was lost")


@dataclass(slots=True)
class Working:
    """ScanProgress what the store does."""

    watch: Watch

    def __enter__(self) -> None:
        self.watch.in_progress += 1

    def __exit__(self, *_: object) -> None:
        self.watch.in_progress -= 1


@dataclass(slots=True)
class WatchedSession:
    """A session of either engine."""

    inner: Any
    watch: Watch

    @property
    def dialect(self) -> str:
        return str(self.inner.dialect)

    @property
    def uses_server_clock(self) -> bool:
        return bool(self.inner.uses_server_clock)

    @property
    def numbers(self) -> Numbers:
        found: Numbers = self.inner.numbers
        return found

    @property
    def outbox(self) -> Outbox:
        found: Outbox = self.inner.outbox
        return found

    @property
    def offloaded(self) -> "WatchedSession":
        return WatchedSession(self.inner.offloaded, self.watch)

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self.inner, name)

        async def watched(*arguments: Any, **named: Any) -> Any:
            with self.watch.working():
                self.watch.step()
                return await method(*arguments, **named)

        return watched


@dataclass(slots=True)
class WatchedStore:
    inner: AnyStore
    watch: Watch = field(default_factory=Watch)

    def __post_init__(self) -> None:
        if isinstance(self.inner, SqliteStore):
            self._watch_commits(self.inner)

    @property
    def handover(self) -> Handover:
        return self.inner.handover

    @handover.setter
    def handover(self, handover: Handover) -> None:
        self.inner.handover = handover

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        self.watch.transactions += 1
        async with self._watched(self.inner.transaction()) as transaction:
            yield transaction

    async def write(self, action: Action[T], priority: Priority) -> T:
        async def watched(transaction: Transaction) -> T:
            self.watch.transactions += 1
            self.watch.step()
            self._watch_statements(transaction)
            made = await action(transaction)
            self.watch.step()
            return made

        with self.watch.working():
            return await self.inner.write(watched, priority)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Transaction]:
        async with self._watched(self.inner.snapshot()) as transaction:
            yield transaction

    @asynccontextmanager
    async def single_read(self) -> AsyncIterator[Transaction]:
        async with self._watched(self.inner.single_read()) as transaction:
            yield transaction

    async def check(self) -> None:
        with self.watch.working():
            self.watch.step()
            await self.inner.check()

    async def prepare_days(self, now: datetime) -> None:
        with self.watch.working():
            await self.inner.prepare_days(now)

    @asynccontextmanager
    async def _watched(self, opening: Any) -> AsyncIterator[Transaction]:
        with self.watch.working():
            self.watch.step()
            transaction = await opening.__aenter__()
        self._watch_statements(transaction)
        try:
            yield transaction
            self.watch.step()
        except BaseException as error:
            with self.watch.working():
                if not await opening.__aexit__(type(error), error, error.__traceback__):
                    raise
        else:
            with self.watch.working():
                await opening.__aexit__(None, None, None)

    def _watch_statements(self, transaction: Transaction) -> None:
        assert isinstance(transaction, RecordsTransaction)
        transaction.session = WatchedSession(transaction.session, self.watch)  # type: ignore[assignment]  # it has everything by name

    def _watch_commits(self, store: SqliteStore) -> None:
        commit = store._ledger.commit

        async def watched(rows: int, *, durable: bool) -> None:
            self.watch.commit()
            await commit(rows, durable=durable)
            self.watch.committed()

        store._ledger.commit = watched  # type: ignore[method-assign]  # the seam where commits fail
