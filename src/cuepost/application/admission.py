"""What a request passes before its use case: its key, the rate limit of the key, and a deadline."""

import asyncio
import math
from collections import OrderedDict
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from types import TracebackType
from typing import Self, TypeVar

from cuepost.application.perform import Perform
from cuepost.domain.access import Account, ApiKey, Caller, Interface, digest, key_id_in
from cuepost.domain.errors import RateLimited, Unauthenticated
from cuepost.domain.immutable import immutable
from cuepost.ports.saving import OF_REQUEST, Saving, track_saving
from cuepost.ports.store import CommitUnknown, Contention, StoreUnavailable, Transaction
from cuepost.ports.system import Clock

T = TypeVar("T")

# How long other processes may still accept a key that was revoked.
TRUST_SECONDS = 1.0
REMEMBERED_KEYS = 10_000
TOUCH_EVERY = timedelta(minutes=1)
REMEMBERED_BUCKETS = 10_000

# The monotonic time until which a key is trusted, and its caller.
_Known = tuple[float, Caller]


@dataclass(frozen=True, slots=True)
class Authenticate:
    """Finds the caller of a key; the result is cached for a second."""

    perform: Perform
    clock: Clock
    _known: dict[bytes, _Known] = field(default_factory=dict)

    async def caller(self, token: str, interface: Interface, address: str | None) -> Caller:
        fingerprint = digest(token)
        known = self._known.get(fingerprint)
        if known is None or self.clock.monotonic() >= known[0]:
            known = await self._look_up(token)
            self._remember(fingerprint, known)
        trusted_until, caller = known
        if caller.address != address or caller.interface is not interface:
            caller = replace(caller, interface=interface, address=address)
            self._remember(fingerprint, (trusted_until, caller))
        return caller

    async def _look_up(self, token: str) -> _Known:
        key_id = key_id_in(token)
        if key_id is None:
            raise Unauthenticated
        trusted_until, now = self.clock.monotonic() + TRUST_SECONDS, self.clock.now()

        async def find(transaction: Transaction) -> tuple[ApiKey | None, Account | None]:
            key = await transaction.keys.get(key_id)
            owner = key.account_id if key else None
            return key, await transaction.accounts.get(owner) if owner else None

        key, account = await self.perform.read(find)
        if key is None or not key.accepts(token, now) or (key.account_id and account is None):
            raise Unauthenticated
        if account is not None:
            account.state.require_readable()
        if key.last_used_at is None or now - key.last_used_at >= TOUCH_EVERY:
            # This write is not part of the caller's request.
            with track_saving(None):
                await self.perform.change(lambda transaction: transaction.keys.touch(key_id, now))
        caller = Caller(
            interface=Interface.REST,
            actor=f"key:{key.id}",
            account_id=key.account_id,
            scopes=key.scopes,
            webhooks_enabled=account is not None and account.webhooks_enabled,
            id=key.id,
            name=key.name,
        )
        return trusted_until, caller

    def _remember(self, fingerprint: bytes, known: _Known) -> None:
        if len(self._known) >= REMEMBERED_KEYS and fingerprint not in self._known:
            del self._known[next(iter(self._known))]
        self._known[fingerprint] = known


@immutable
class Allowance:
    """For the RateLimit headers: limit per minute, tokens left, seconds until it is full."""

    limit: int
    remaining: int
    reset_seconds: int


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


@dataclass(frozen=True, slots=True)
class RateLimit:
    clock: Clock
    per_minute: int
    per_minute_for_services: int
    # The least recently used comes first.
    _buckets: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)

    def spend(self, caller: Caller) -> Allowance:
        limit = self.per_minute if caller.account_id else self.per_minute_for_services
        now = self.clock.monotonic()
        bucket = self._buckets.get(caller.actor)
        if bucket is None:
            if len(self._buckets) >= REMEMBERED_BUCKETS:
                self._buckets.popitem(last=False)
            bucket = self._buckets[caller.actor] = _Bucket(limit, now)
        else:
            self._buckets.move_to_end(caller.actor)
        elapsed, bucket.filled_at = now - bucket.filled_at, now
        bucket.tokens = min(limit, bucket.tokens + elapsed * limit / 60)
        if bucket.tokens < 1:
            raise RateLimited(limit, math.ceil((1 - bucket.tokens) * 60 / limit))
        bucket.tokens -= 1
        reset = math.ceil((limit - bucket.tokens) * 60 / limit)
        return Allowance(limit, int(bucket.tokens), reset)


@dataclass(eq=False)
class RequestDeadline:
    """Raises StoreUnavailable after the timeout, because requests wait mostly for the store.

    That, and any other failure of the store, becomes CommitUnknown if something may be saved.

    It cancels the task as `asyncio.timeout` does, but a request has one timer: when the clock was
    stopped for a while, the timer notices that as it fires, and is set again.
    """

    seconds: float | None
    _saving: Saving = field(default_factory=Saving)
    _timer: asyncio.TimerHandle | None = None
    _is_paused: bool = False
    _has_expired: bool = False

    def __enter__(self) -> Self:
        task = asyncio.current_task()
        assert task is not None
        self._task, self._cancelling = task, task.cancelling()
        self._saving_before = OF_REQUEST.set(self._saving)
        self._loop = asyncio.get_running_loop()
        if self.seconds is not None:
            self._until = self._loop.time() + self.seconds
            self._timer = self._loop.call_at(self._until, self._on_timer)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        OF_REQUEST.reset(self._saving_before)
        if self._timer is not None:
            self._timer.cancel()
        if self._has_expired:
            # Unless the task was cancelled by others as well.
            is_ours = self._task.uncancel() <= self._cancelling
            if is_ours and kind is asyncio.CancelledError:
                late = CommitUnknown if self._saving.begun else StoreUnavailable
                raise late(f"the request was not done within {self.seconds:g} s") from error
        if isinstance(error, CommitUnknown) or not self._saving.begun:
            return
        if isinstance(error, StoreUnavailable | Contention):
            raise CommitUnknown(str(error), error.sqlstate) from error

    async def excluding(self, client: Awaitable[T]) -> T:
        """Stop the clock while the client has to act, for example to send its body."""
        if self.seconds is None:
            return await client
        began, self._is_paused = self._loop.time(), True
        try:
            return await client
        finally:
            self._is_paused = False
            self._until += self._loop.time() - began
            if self._timer is None:
                self._timer = self._loop.call_at(self._until, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self._is_paused:
            return
        if self._loop.time() < self._until:
            self._timer = self._loop.call_at(self._until, self._on_timer)
        else:
            self._has_expired = True
            self._task.cancel()
