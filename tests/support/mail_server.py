"""A real SMTP server on loopback, which keeps what it gets."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from email import message_from_bytes
from email.message import Message
from threading import Condition
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


class MailServer:
    """`refusing` answers every message with a temporary error."""

    def __init__(self, port: int) -> None:
        self.port, self.refusing = port, False
        self.messages: list[Message] = []
        self.commands: list[str] = []
        self.logins: list[tuple[str, str]] = []
        self._changed = Condition()

    async def handle_EHLO(  # noqa: N802  # the name that aiosmtpd calls
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, answers: list[str]
    ) -> list[str]:
        session.host_name = hostname
        self.commands.append("EHLO")
        return answers

    async def handle_MAIL(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        self.commands.append("MAIL")
        envelope.mail_from = address
        return "250 OK"

    async def handle_DATA(  # noqa: N802
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

    def text(self, number: int) -> str:
        content = self.messages[number].get_payload(decode=True)
        assert isinstance(content, bytes)
        return content.decode().replace("\r\n", "\n")

    def wait_for(self, count: int, seconds: float = 30.0) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.messages) >= count, seconds)


@contextmanager
def mail_server(
    port: int,
    *,
    tls: ssl.SSLContext | None = None,
    starttls: ssl.SSLContext | None = None,
    login: tuple[str, str] | None = None,
) -> Iterator[MailServer]:
    """With `login` it knows only that user and password."""

    def authenticate(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any
    ) -> AuthResult:
        assert isinstance(given, LoginPassword)
        handler.logins.append((given.login.decode(), given.password.decode()))
        return AuthResult(success=handler.logins[-1] == login, handled=False)

    handler = MailServer(port)
    controller: Any = Controller(
        handler,
        hostname="127.0.0.1",
        port=port,
        ssl_context=tls,
        tls_context=starttls,
        require_starttls=starttls is not None,
        authenticator=authenticate if login else None,
        auth_required=login is not None and tls is None,
        auth_require_tls=tls is None,
    )
    controller.start()
    try:
        yield handler
    finally:
        controller.stop()
