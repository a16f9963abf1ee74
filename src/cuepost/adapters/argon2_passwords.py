"""Hashes passwords with Argon2id in a few threads, because each hash takes memory and a core."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from cuepost.ports.passwords import PasswordsBusy

if TYPE_CHECKING:
    from argon2 import PasswordHasher

T = TypeVar("T")

AT_ONCE = 2
# About two seconds of hashing on a slow core; further calls are refused with PasswordsBusy.
MOST_AT_WORK = 32


class Argon2Passwords:
    """Imports argon2 at the first use, so that a process without password sign-ins does not."""

    def __init__(self, hasher: "PasswordHasher | None" = None) -> None:
        self._given = hasher
        self._slots = asyncio.Semaphore(AT_ONCE)
        self._at_work = 0

    @cached_property
    def _hasher(self) -> "PasswordHasher":
        from argon2 import PasswordHasher  # noqa: PLC0415  # see above

        return self._given or PasswordHasher()

    @cached_property
    def _unknown_user_hash(self) -> str:
        return self._hasher.hash("unknown user")

    async def hashed(self, password: str) -> str:
        return await self._in_thread(lambda: self._hasher.hash(password))

    async def matches(self, password: str, known_hash: str | None) -> bool:
        return await self._in_thread(lambda: self._verified(password, known_hash))

    async def _in_thread(self, work: Callable[[], T]) -> T:
        if self._at_work >= MOST_AT_WORK:
            raise PasswordsBusy
        self._at_work += 1
        try:
            async with self._slots:
                return await asyncio.to_thread(work)
        finally:
            self._at_work -= 1

    def _verified(self, password: str, known_hash: str | None) -> bool:
        from argon2.exceptions import (  # noqa: PLC0415  # see above
            InvalidHashError,
            VerificationError,
        )

        unknown_user_hash = self._unknown_user_hash
        try:
            self._hasher.verify(unknown_user_hash if known_hash is None else known_hash, password)
        except (VerificationError, InvalidHashError):
            return False
        return known_hash is not None
