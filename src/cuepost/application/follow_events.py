"""The event streams of listeners: positions are durable, and events are acknowledged.

A listener's stream is built when it is read, never when an event is written. Events are returned
until the listener acknowledges them, so none is lost on the way.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from uuid import UUID

from cuepost.application.audit_trail import AuditTrail
from cuepost.application.perform import Perform
from cuepost.domain.access import Caller, Scope
from cuepost.domain.audit import Action
from cuepost.domain.endpoint import subscription
from cuepost.domain.errors import ListenerLimitReached, NotFound
from cuepost.domain.event_catalog import SUBSCRIBABLE
from cuepost.domain.listener import Listener
from cuepost.ports.listeners import Streamed
from cuepost.ports.records import Page
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock, IdSource

MOST_LISTENERS = 100
POLL_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class FollowEvents:
    perform: Perform
    clock: Clock
    ids: IdSource
    audit: AuditTrail
    _stopping: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(
        self, transaction: Transaction, caller: Caller, name: str, events: Sequence[str] | None
    ) -> Listener:
        """The listener of that name, which continues where it stopped, or a new one."""
        account_id, now = caller.require_webhooks(Scope.WEBHOOKS_MANAGE), self.clock.now()
        chosen = subscription(events) if events else SUBSCRIBABLE
        found = await transaction.listeners.lock_named(account_id, name)
        if found is not None:
            resumed = replace(found, events=chosen, served_at=now)
            await transaction.listeners.save(resumed)
            return resumed
        # Concurrent registrations wait here, so that the limit is not exceeded.
        await transaction.accounts.lock(account_id)
        if await transaction.listeners.count(account_id) >= MOST_LISTENERS:
            raise ListenerLimitReached(
                f"The account has {MOST_LISTENERS} listeners already; delete one first."
            )
        numbers = await transaction.listeners.transaction_numbers()
        made = Listener.registered(
            account_id, self.ids(now), name, chosen, now=now, numbers=numbers
        )
        await transaction.listeners.add(made)
        await self.audit.note(
            transaction, caller, Action.LISTENER_CREATED, account_id, made.id, name=name
        )
        return made

    async def page(self, transaction: Transaction, caller: Caller, page: Page) -> list[Listener]:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        return await transaction.listeners.page(account_id, page)

    async def delete(self, transaction: Transaction, caller: Caller, listener_id: UUID) -> None:
        listener = await self._locked(transaction, caller, listener_id)
        await transaction.listeners.delete(listener.account_id, listener.id)
        await self.audit.note(
            transaction,
            caller,
            Action.LISTENER_DELETED,
            listener.account_id,
            listener.id,
            name=listener.name,
        )

    async def acknowledge(
        self, transaction: Transaction, caller: Caller, listener_id: UUID, up_to: int
    ) -> Listener:
        listener = await self._locked(transaction, caller, listener_id)
        done = replace(listener.acknowledging(up_to), served_at=self.clock.now())
        await transaction.listeners.save(done)
        return done

    async def follow(
        self, caller: Caller, listener_id: UUID, limit: int, wait: timedelta
    ) -> list[Streamed]:
        """The next unacknowledged events; if there are none, wait for them at most this long.

        While it waits it uses no transaction and no connection.
        """
        until = self.clock.monotonic() + wait.total_seconds()
        found = await self._taken(caller, listener_id, limit)
        while not found and self.clock.monotonic() < until and not self._stopping.is_set():
            await self.clock.wait_for(self._stopping, POLL_SECONDS)
            if await self._has_news(caller, listener_id):
                found = await self._taken(caller, listener_id, limit)
        return found

    def stop_waiting(self) -> None:
        """Answer waiting listeners with no events, so that they reconnect to another process."""
        self._stopping.set()

    async def _taken(self, caller: Caller, listener_id: UUID, limit: int) -> list[Streamed]:
        return await self.perform.change_by(
            caller, lambda transaction: self._take(transaction, caller, listener_id, limit)
        )

    async def _take(
        self, transaction: Transaction, caller: Caller, listener_id: UUID, limit: int
    ) -> list[Streamed]:
        # Read before the first statement, when the transaction has no number yet.
        now = self.clock.now()
        listener = await self._locked(transaction, caller, listener_id)
        waiting = await transaction.listeners.waiting(listener, now, limit)
        if not waiting:
            numbers = await transaction.listeners.transaction_numbers()
            found = await transaction.listeners.to_append(listener, limit)
            await transaction.listeners.append(listener, found)
            listener = listener.having_found(
                found, is_all=len(found) < limit, now=now, numbers=numbers
            )
            await transaction.listeners.delete_acknowledged(listener)
            waiting = await transaction.listeners.waiting(listener, now, limit)
        await transaction.listeners.save(replace(listener, served_at=now))
        return waiting

    async def _has_news(self, caller: Caller, listener_id: UUID) -> bool:
        async def check(transaction: Transaction) -> bool:
            account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
            listener = await transaction.listeners.get(account_id, listener_id)
            if listener is None:
                raise NotFound
            if await transaction.listeners.to_append(listener, 1):
                return True
            return bool(await transaction.listeners.waiting(listener, self.clock.now(), 1))

        return await self.perform.read(check)

    async def _locked(
        self, transaction: Transaction, caller: Caller, listener_id: UUID
    ) -> Listener:
        account_id = caller.require_webhooks(Scope.WEBHOOKS_MANAGE)
        listener = await transaction.listeners.lock(account_id, listener_id)
        if listener is None:
            raise NotFound
        return listener
