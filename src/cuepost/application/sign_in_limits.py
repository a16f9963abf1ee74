"""The limit of sign-in attempts: counted per e-mail and per client, for all processes."""

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from cuepost.application.perform import Perform
from cuepost.domain.client_address import counted_address
from cuepost.domain.errors import TooManySignIns
from cuepost.ports.passwords import PasswordsBusy
from cuepost.ports.store import Transaction
from cuepost.ports.system import Clock

WINDOW = timedelta(minutes=15)
MOST_PER_ADDRESS = 30
MOST_PER_EMAIL = 10


@dataclass(slots=True)
class SignInAttempt:
    counts: bool = True

    def give_back(self) -> None:
        self.counts = False


@dataclass(frozen=True, slots=True)
class SignInLimits:
    """An attempt is counted before its password is checked, so that parallel attempts count.

    The count is taken back if the password was right, so that an office behind one address is not
    locked out, and if the password could not be checked.
    """

    perform: Perform
    clock: Clock

    @asynccontextmanager
    async def attempt(self, name: str | None, address: str | None) -> AsyncIterator[SignInAttempt]:
        """Raises TooManySignIns before the block begins; such an attempt is not counted.

        Without a name only the client is counted.
        """
        keys, attempt = _keys(name, address), SignInAttempt()
        await self.perform.change(lambda transaction: self._count(transaction, keys))
        try:
            yield attempt
        except PasswordsBusy:
            attempt.give_back()
            raise
        finally:
            if not attempt.counts:
                await self.perform.change(lambda transaction: self._give_back(transaction, keys))

    async def is_first_use(self, name: str) -> bool:
        """For what can be used once, by one process of all; it must expire before the window."""
        key, now = _digest(f"once {name}"), self.clock.now()
        count = await self.perform.change(
            lambda transaction: transaction.sign_in_attempts.count(key, now, WINDOW)
        )
        return count == 1

    async def _count(self, transaction: Transaction, keys: dict[bytes, int]) -> None:
        for key, most in keys.items():
            count = await transaction.sign_in_attempts.count(key, self.clock.now(), WINDOW)
            if count > most:
                raise TooManySignIns

    async def _give_back(self, transaction: Transaction, keys: dict[bytes, int]) -> None:
        for key in keys:
            await transaction.sign_in_attempts.give_back(key, self.clock.now())


def _keys(name: str | None, address: str | None) -> dict[bytes, int]:
    """In the same order in all processes, so that there is no deadlock."""
    limits = {f"client {counted_address(address or '')}": MOST_PER_ADDRESS}
    if name is not None:
        limits[f"name {name}"] = MOST_PER_EMAIL
    return dict(sorted((_digest(key), most) for key, most in limits.items()))


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "replace")).digest()
