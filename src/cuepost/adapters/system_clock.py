"""The real clock, ids and randomness: the only place that reads them from the system."""

import asyncio
import random
import secrets
import time
from datetime import UTC, datetime
from uuid import UUID

from cuepost.adapters.quick_ids import ID_BYTES, id_from
from cuepost.domain.instants import MILLIS_SHIFT, compose, to_millis

_COUNTER_BITS = 18
# Of the 74 free bits: twelve above the variant, 62 below it.
_LOW_COUNTER_BITS = 6
_CHANCE_BITS = 74 - _COUNTER_BITS
# An id with version and variant, but without time and random bits.
_EMPTY_ID = compose(0, 0).int
# Linux stops CLOCK_MONOTONIC while the machine is suspended, but leases expire nevertheless.
_STEADY = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class SystemClock:
    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time_ns() // 1_000_000 / 1000, UTC)

    def monotonic(self) -> float:
        return time.clock_gettime(_STEADY)

    async def wait(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def wait_for(self, event: asyncio.Event, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                return await event.wait()
        except TimeoutError:
            return False


class SystemIds:
    """Ids of one millisecond are numbered, so that they sort in the order of their creation."""

    def __init__(self) -> None:
        self._at: datetime | None = None
        self._lowest = -1
        self._counter = 0

    def __call__(self, at: datetime) -> UUID:
        # Most ids are of the same instant as the one before.
        lowest = self._lowest if at == self._at else to_millis(at) << MILLIS_SHIFT | _EMPTY_ID
        self._counter = self._counter + 1 if lowest == self._lowest else 0
        self._at, self._lowest = at, lowest
        # More than 2^18 ids in a millisecond wrap the counter; the random bits still differ.
        number = self._counter % (1 << _COUNTER_BITS)
        high, low = number >> _LOW_COUNTER_BITS, number & (1 << _LOW_COUNTER_BITS) - 1
        # Ids have to be unique, not secret, so `random` suffices.
        chance = random.getrandbits(_CHANCE_BITS)
        made = self._lowest | high << 64 | low << _CHANCE_BITS | chance
        return id_from(made.to_bytes(ID_BYTES))


def system_entropy(count: int) -> bytes:
    return secrets.token_bytes(count)


def system_jitter() -> float:
    """A number in [0, 1)."""
    return random.random()
