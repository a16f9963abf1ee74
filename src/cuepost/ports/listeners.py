"""Listeners and their streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.event import Event
from cuepost.domain.listener import Listener, TransactionNumbers
from cuepost.ports.records import Page


@dataclass(frozen=True, slots=True)
class Streamed:
    """An event and its place in the stream of a listener."""

    position: int
    event: Event


class Listeners(Protocol):
    async def transaction_numbers(self) -> TransactionNumbers:
        """Of this transaction, which must be one that writes."""
        ...

    async def add(self, listener: Listener) -> None:
        """Its stream has the events that are committed later, not those that are visible now."""
        ...

    async def get(self, account_id: UUID, listener_id: UUID) -> Listener | None: ...
    async def lock(self, account_id: UUID, listener_id: UUID) -> Listener | None: ...
    async def lock_named(self, account_id: UUID, name: str) -> Listener | None: ...
    async def count(self, account_id: UUID) -> int: ...
    async def page(self, account_id: UUID, page: Page) -> list[Listener]: ...
    async def save(self, listener: Listener) -> None: ...
    async def delete(self, account_id: UUID, listener_id: UUID) -> None: ...

    async def to_append(self, listener: Listener, limit: int) -> list[UUID]:
        """Events that are to be appended to its stream, the lowest ids first."""
        ...

    async def append(self, listener: Listener, event_ids: Sequence[UUID]) -> None:
        """Give the events the positions after its last one, in this order."""
        ...

    async def delete_acknowledged(self, listener: Listener) -> None:
        """Delete the positions that are acknowledged and settled, which are not read again."""
        ...

    async def waiting(self, listener: Listener, now: datetime, limit: int) -> list[Streamed]:
        """The unacknowledged events of its stream, without projects that may not notify."""
        ...

    async def any_unserved(self, before: datetime) -> bool: ...
    async def delete_unserved(self, before: datetime, limit: int) -> bool:
        """Delete up to `limit` that were not read since then; return True if there may be more."""
        ...
