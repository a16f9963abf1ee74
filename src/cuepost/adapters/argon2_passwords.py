"""Passwords under Argon2id, hashed in threads, few at once: each takes memory and a core."""

import asyncio
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argon2 import PasswordHasher

AT_ONCE = 2


class Argon2Passwords:
    """Loads the library when somebody signs in with a password, and not at the start."""

    def __init__(self, hasher: "PasswordHasher | None" = None) -> None:
        self._given = hasher
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._of_nobody: str | None = None

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # noqa: PLC0415  # see above

        return self._given or PasswordHasher()

    async def hashed(self, password: str) -> str:
        async with self._turns:
            return await asyncio.to_thread(self._hasher.hash, password)

    async def fits(self, password: str, known_hash: str | None) -> bool:
        if self._of_nobody is None:
            self._of_nobody = await self.hashed("nobody")
        async with self._turns:
            right = await asyncio.to_thread(
                self._verified, password, self._of_nobody if known_hash is None else known_hash
            )
        return right and known_hash is not None

    def _verified(self, password: str, known_hash: str) -> bool:
        from argon2.exceptions import (  # noqa: PLC0415  # see above
            InvalidHashError,
            VerificationError,
        )

        try:
            return self._hasher.verify(known_hash, password)
        except (VerificationError, InvalidHashError):
            return False
