"""Clock, ids, randomness and the encryption of secrets."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time in UTC, in milliseconds; the clock may be set forwards or back.

        It is for times that are stored or signed, or compared with stored ones.
        """
        ...

    def monotonic(self) -> float:
        """Seconds since a fixed point, independent of changes of the wall clock.

        It is for durations within this process; time while the machine is suspended counts.
        """
        ...

    async def wait(self, seconds: float) -> None: ...

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait at most `seconds` until the event is set; return whether it was set."""
        ...


class IdSource(Protocol):
    def __call__(self, at: datetime) -> UUID:
        """A new version 7 UUID with that time; the ids of one source never decrease."""
        ...


class Entropy(Protocol):
    def __call__(self, count: int) -> bytes:
        """Cryptographically random bytes."""
        ...


KEY_ID_BYTES = 4


class CannotOpen(Exception):
    """None of the master keys opens this value; was CUEPOST_MASTER_KEY changed?"""

    def __init__(self) -> None:
        super().__init__(type(self).__doc__)


class SecretBox(Protocol):
    """A sealed value begins with the id of its key."""

    @property
    def key_ids(self) -> Sequence[bytes]:
        """The ids of all keys that can decrypt; the first one encrypts."""
        ...

    def seal(self, plain: bytes, context: bytes) -> bytes:
        """Encrypt; `open` needs the same context."""
        ...

    def open(self, sealed: bytes, context: bytes) -> bytes:
        """Raises CannotOpen."""
        ...
