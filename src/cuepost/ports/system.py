"""Time, ids, chance and sealed secrets: everything ambient is a port."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant in UTC, at millisecond precision; it may be set forwards or back.

        It is for what is stored or signed, or compared with what is stored.
        """
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed point, which no setting of the wall clock changes.

        It is for durations within this process; the time that the machine sleeps counts.
        """
        ...

    async def wait(self, seconds: float) -> None: ...

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Until the event is set, but no longer than that; whether it was set."""
        ...


class IdSource(Protocol):
    def __call__(self, at: datetime) -> UUID:
        """A new version 7 UUID of that instant; within one source they never go backwards."""
        ...


class Entropy(Protocol):
    def __call__(self, count: int) -> bytes:
        """Bytes that nobody can guess."""
        ...


KEY_ID_BYTES = 4


class SecretBox(Protocol):
    """A sealed value begins with the id of its key."""

    @property
    def key_ids(self) -> Sequence[bytes]:
        """Of all keys that open; the first one seals."""
        ...

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt; the same context is needed to open again."""
        ...

    def open(self, sealed: bytes, context: bytes) -> bytes: ...
