"""Listeners and their streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuepost.domain.event import Event
from cuepost.domain.listener import Listener, Turn
from cuepost.ports.records import Page


@dataclass(frozen=True, slots=True)
class Streamed:
    """An event and its place in the stream of a listener."""

    position: int
    event: Event


class Listeners(Protocol):
    async def turn(self) -> Turn:
        """Of this transaction, which must write."""
        ...

    async def add(self, listener: Listener) -> None:
        """What can be seen now is not in its stream; what is committed later will be."""
        ...

    async def get(self, account_id: UUID, listener_id: UUID) -> Listener | None: ...
    async def lock(self, account_id: UUID, listener_id: UUID) -> Listener | None: ...
    async def lock_named(self, account_id: UUID, name: str) -> Listener | None: ...
    async def count(self, account_id: UUID) -> int: ...
    async def page(self, account_id: UUID, page: Page) -> list[Listener]: ...
    async def save(self, listener: Listener) -> None: ...
    async def delete(self, account_id: UUID, listener_id: UUID) -> None: ...

    async def unnoticed(self, listener: Listener, limit: int) -> list[UUID]:
        """Events that are not in its stream yet, the lowest ids first."""
        ...

    async def append(self, listener: Listener, event_ids: Sequence[UUID]) -> None:
        """Behind its last position, in this order."""
        ...

    async def let_go(self, listener: Listener) -> None:
        """Forget what is acknowledged and settled: nobody will find it a second time."""
        ...

    async def waiting(self, listener: Listener, now: datetime, limit: int) -> list[Streamed]:
        """What is in its stream and not acknowledged; nothing of projects that may not notify."""
        ...

    async def any_unserved(self, before: datetime) -> bool: ...
    async def delete_unserved(self, before: datetime, limit: int) -> bool:
        """Forget so many that nobody has served since then; True when there may be more."""
        ...
