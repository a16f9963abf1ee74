"""Runs use cases in transactions, retries on contention, and stores idempotent answers."""

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
# For an operator at the command line, who has no id.
NO_CALLER_ID = UUID(int=1)
SEAL_CONTEXT = b"idempotent answer"


@dataclass(frozen=True, slots=True)
class IdempotentCall:
    """An Idempotency-Key, and a fingerprint of the request that came with it."""

    key: str
    fingerprint: bytes


@dataclass(frozen=True, slots=True)
class IdempotentResponse:
    """A response as opaque bytes; `replayed` if it is the stored one of an earlier request."""

    content: bytes = field(repr=False)
    replayed: bool = False


@dataclass(frozen=True, slots=True)
class Browsed(Generic[T]):
    """What was read, and how old it may be."""

    value: T
    lag: timedelta = timedelta(0)

    @property
    def lag_seconds(self) -> int:
        """Whole seconds, because less than a second need not be mentioned."""
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
        """For lists of history and for figures, which may lag a little.

        If the replica does not have something, it is read from the store, which may have it.
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
        """For a single statement."""
        try:
            async with self.store.single_read() as transaction:
                return await action(transaction)
        except ConnectionDied:
            # A snapshot skips the other connections that were closed as well.
            return await self.read(action)

    async def change(self, action: Action[T]) -> T:
        for _ in range(TRIES - 1):
            try:
                return await self._change_once(action)
            except Contention:
                continue
        return await self._change_once(action)

    async def change_by(self, caller: Caller | None, action: Action[T]) -> T:
        """Refused while the caller's account, if there is one, moves to another database."""
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
        """The change and its answer commit together, so a retry never repeats the change.

        A refusal is stored as well, except a failed precondition or a moving account, because the
        caller then sends the same request again.
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
        """The stored answer, for work that spans several transactions and is itself idempotent."""

        async def find(transaction: Transaction) -> IdempotentResponse | None:
            return self._replay(call, await self._claim(caller, call, transaction))

        return await self.change(find)

    async def remember(self, caller: Caller, call: IdempotentCall, content: bytes) -> None:
        async def keep(transaction: Transaction) -> None:
            earlier = await self._claim(caller, call, transaction)
            # If another request has stored an answer for this key, that answer is kept.
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
            caller.id or NO_CALLER_ID,
            call.key,
            call.fingerprint,
            self.clock.now(),
        )

    async def _keep(
        self, caller: Caller, call: IdempotentCall, content: bytes, transaction: Transaction
    ) -> None:
        sealed = self.box.seal(content, SEAL_CONTEXT)
        await transaction.idempotency.remember(
            caller.account_id or OPERATOR, caller.id or NO_CALLER_ID, call.key, sealed
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
    """The account cannot begin to move until the transaction ends."""
    state = (await transaction.accounts.not_live([account_id])).get(account_id)
    if state is not None:
        state.require_live()


def _in_live_account(caller: Caller | None, action: Action[T]) -> Action[T]:
    account_id = None if caller is None else caller.account_id
    if account_id is None:
        return action

    async def act(transaction: Transaction) -> T:
        done = await action(transaction)
        # After the action, because an action that locks the account has to do so first.
        await require_live(transaction, account_id)
        return done

    return act
