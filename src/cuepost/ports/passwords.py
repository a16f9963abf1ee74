"""Passwords are hashed slowly, on purpose, and never on the thread that serves others."""

from typing import Protocol


class PasswordsBusy(Exception):
    """More passwords wait to be hashed than can be soon; try again in a moment."""


class Passwords(Protocol):
    """Both raise PasswordsBusy rather than let many wait."""

    async def hashed(self, password: str) -> str: ...

    async def fits(self, password: str, known_hash: str | None) -> bool:
        """Takes as long whether there is a hash to compare with or not."""
        ...


class NoPasswords:
    """Where nobody signs in: no password is ever right."""

    async def hashed(self, password: str) -> str:
        raise AssertionError("this service was put together without passwords")

    async def fits(self, password: str, known_hash: str | None) -> bool:
        return False
