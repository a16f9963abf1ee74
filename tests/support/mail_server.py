"""A real SMTP server on loopback, which keeps what it gets."""

from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from threading import Condition
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session


class MailServer:
    """`refusing` answers every message with a temporary error."""

    def __init__(self, port: int) -> None:
        self.port, self.refusing = port, False
        self.messages: list[Message] = []
        self._changed = Condition()

    async def handle_DATA(  # noqa: N802  # the name that aiosmtpd calls
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        if self.refusing:
            return "451 try again later"
        content = envelope.content
        assert isinstance(content, bytes)
        with self._changed:
            self.messages.append(message_from_bytes(content))
            self._changed.notify_all()
        return "250 taken"

    @property
    def subjects(self) -> list[str]:
        return [str(each["Subject"]) for each in self.messages]

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= count, seconds)


@contextmanager
def mail_server(port: int) -> Iterator[MailServer]:
    handler = MailServer(port)
    controller: Any = Controller(handler, hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield handler
    finally:
        controller.stop()
