"""Hashing of passwords: slow on purpose, and never on the thread of the event loop."""

from typing import Protocol


class PasswordsBusy(Exception):
    """Too many passwords are waiting to be hashed; try again in a moment."""


class Passwords(Protocol):
    """Both methods raise PasswordsBusy instead of letting many callers wait."""

    async def hashed(self, password: str) -> str: ...

    async def matches(self, password: str, known_hash: str | None) -> bool:
        """Takes the same time whether `known_hash` is None or not."""
        ...


class NoPasswords:
    """For a service without sign-in: no password matches."""

    async def hashed(self, password: str) -> str:
        raise AssertionError("this service has no password hashing")

    async def matches(self, password: str, known_hash: str | None) -> bool:
        return False
