"""Sending e-mail."""

from typing import Protocol


class MailNotSent(Exception):
    """The mail server did not take the message; it may take it later."""


class Mailer(Protocol):
    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Raises MailNotSent."""
        ...
