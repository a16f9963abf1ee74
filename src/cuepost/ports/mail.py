"""Sending e-mail."""

from typing import Protocol

DEADLINE_SECONDS = 30.0
"""A mail server that takes longer for one message has not taken it."""


class MailNotSent(Exception):
    """The mail server did not take the message; it may take it later."""


class Mailer(Protocol):
    async def send(self, recipient: str, subject: str, text: str) -> None:
        """Raises MailNotSent."""
        ...
