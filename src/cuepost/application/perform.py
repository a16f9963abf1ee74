"""Runs a use case in a transaction, once: contention is tried again, an Idempotency-Key is kept."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Generic, TypeVar
from uuid import UUID

from cuepost.domain.access import Caller
from cuepost.domain.errors import (
    AccountMoved,
    AccountMoving,
    IdempotencyKeyReused,
    NotFound,
    PreconditionFailed,
    Refused,
)
from cuepost.ports.records import StoredAnswer
from cuepost.ports.store import (
    Action,
    ConnectionDied,
    Contention,
    Replica,
    Store,
    StoreError,
    Transaction,
)
from cuepost.ports.system import Clock, SecretBox

T = TypeVar("T")

TRIES = 5
# Service keys belong to no account; their idempotency keys and audit entries are under this one.
OPERATOR = UUID(int=0)
# An operator at the command line has no id of their own.
NOBODY = UUID(int=1)
SEAL_CONTEXT = b"idempotent answer"


@dataclass(frozen=True, slots=True)
class IdempotentCall:
    """An Idempotency-Key, and a fingerprint of the request that came with it."""

    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class IdempotentResponse:
    """A response as opaque bytes; `replayed` when an earlier response is repeated."""

    content: bytes = field(repr=False)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Browsed(Generic[T]):
    """What was read, and how old it may be."""

    value: T
    lag: timedelta = timedelta(0)

    @property
    def lag_seconds(self) -> int:
        """Less than a second is not worth mentioning."""
        return int(self.lag.total_seconds())


@dataclass(frozen=True, slots=True)
class Perform:
    store: Store
    clock: Clock
    box: SecretBox
    replica: Replica | None = None

    async def read(self, action: Action[T]) -> T:
        async with self.store.snapshot() as transaction:
            return await action(transaction)

    async def browse(self, action: Action[T]) -> Browsed[T]:
        """For lists of history and for figures, which may be a little old.

        What the replica does not have may be too new for it, so the store is asked.
        """
        lag = None if self.replica is None else await self.replica.lag()
        if self.replica is not None and lag is not None:
            try:
                async with self.replica.snapshot() as transaction:
                    return Browsed(await action(transaction), lag)
            except StoreError as error:
                self.replica.failed(error)
            except NotFound:
                pass
        return Browsed(await self.read(action))

    async def single_read(self, action: Action[T]) -> T:
        """For a single question."""
        try:
            async with self.store.single_read() as transaction:
                return await action(transaction)
        except ConnectionDied:
            # A snapshot passes over all those that died with it.
            return await self.read(action)

    async def change(self, action: Action[T]) -> T:
        for _ in range(TRIES - 1):
            try:
                return await self._change_once(action)
            except Contention:
                continue
        return await self._change_once(action)

    async def change_by(self, caller: Caller | None, action: Action[T]) -> T:
        """In the caller's account, where there is one; not while it moves to another database."""
        return await self.change(_in_live_account(caller, action))

    async def _change_once(self, action: Action[T]) -> T:
        async with self.store.transaction() as transaction:
            return await action(transaction)

    async def once(
        self,
        caller: Caller,
        call: IdempotentCall | None,
        action: Action[bytes],
        refusal: Callable[[Refused], bytes],
    ) -> IdempotentResponse:
        """The change and the memory of its answer commit together, so a retry never does it twice.

        A refusal is an answer too, and remembered as such; but not that the caller has to read
        again what it wants to change, or that the account moves, because then it sends the same
        request once more.
        """
        if call is None:
            return IdempotentResponse(await self.change_by(caller, action))
        try:
            return await self.change_by(
                caller, lambda transaction: self._first(caller, call, action, transaction)
            )
        except (IdempotencyKeyReused, PreconditionFailed, AccountMoving, AccountMoved):
            raise
        except Refused as refused:
            content = refusal(refused)
            await self.remember(caller, call, content)
            return IdempotentResponse(content)

    async def recall(self, caller: Caller, call: IdempotentCall) -> IdempotentResponse | None:
        """For work that spans several transactions and is idempotent in itself."""

        async def look(transaction: Transaction) -> IdempotentResponse | None:
            return self._replay(call, await self._claim(caller, call, transaction))

        return await self.change(look)

    async def remember(self, caller: Caller, call: IdempotentCall, content: bytes) -> None:
        async def keep(transaction: Transaction) -> None:
            earlier = await self._claim(caller, call, transaction)
            # Another request may have answered under this key meanwhile; the first answer stays.
            if earlier is None or earlier == StoredAnswer(call.fingerprint, None):
                await self._keep(caller, call, content, transaction)

        await self.change_by(caller, keep)

    async def _first(
        self, caller: Caller, call: IdempotentCall, action: Action[bytes], transaction: Transaction
    ) -> IdempotentResponse:
        earlier = self._replay(call, await self._claim(caller, call, transaction))
        if earlier is not None:
            return earlier
        content = await action(transaction)
        await self._keep(caller, call, content, transaction)
        return IdempotentResponse(content)

    async def _claim(
        self, caller: Caller, call: IdempotentCall, transaction: Transaction
    ) -> StoredAnswer | None:
        return await transaction.idempotency.claim(
            caller.account_id or OPERATOR,
            caller.id or NOBODY,
            call.key,
            call.fingerprint,
            self.clock.now(),
        )

    async def _keep(
        self, caller: Caller, call: IdempotentCall, content: bytes, transaction: Transaction
    ) -> None:
        sealed = self.box.seal(content, SEAL_CONTEXT)
        await transaction.idempotency.remember(
            caller.account_id or OPERATOR, caller.id or NOBODY, call.key, sealed
        )

    def _replay(
        self, call: IdempotentCall, earlier: StoredAnswer | None
    ) -> IdempotentResponse | None:
        if earlier is None:
            return None
        if earlier.fingerprint != call.fingerprint:
            raise IdempotencyKeyReused
        if earlier.sealed_answer is None:
            return None
        return IdempotentResponse(self.box.open(earlier.sealed_answer, SEAL_CONTEXT), replayed=True)


async def require_live(transaction: Transaction, account_id: UUID) -> None:
    """From here on the account cannot begin to move before the transaction ends."""
    state = (await transaction.accounts.not_live([account_id])).get(account_id)
    if state is not None:
        state.require_live()


def _in_live_account(caller: Caller | None, action: Action[T]) -> Action[T]:
    account_id = None if caller is None else caller.account_id
    if account_id is None:
        return action

    async def act(transaction: Transaction) -> T:
        done = await action(transaction)
        # At the end: whoever locks the account itself has to do so before anything holds it.
        await require_live(transaction, account_id)
        return done

    return act
