"""E-mail over SMTP, with the standard library, in a thread of its own for each message."""

import asyncio
import smtplib
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime

from cuepost.ports.mail import DEADLINE_SECONDS, MailNotSent
from cuepost.ports.system import Clock


@dataclass(frozen=True, slots=True, repr=False)
class SmtpServer:
    """`tls` from the start, or with `starttls` after the greeting; nothing is sent before it."""

    host: str
    port: int
    tls: bool = False
    starttls: bool = False
    user: str | None = None
    password: str | None = None


class SmtpMailer:
    """`deadline` is the limit for a message in seconds, however slowly the server answers."""

    def __init__(
        self,
        server: SmtpServer,
        sender: str,
        clock: Clock,
        deadline: float = DEADLINE_SECONDS,
    ) -> None:
        self._server, self._sender, self._clock = server, sender, clock
        self._deadline = deadline

    async def send(self, recipient: str, subject: str, text: str) -> None:
        message = EmailMessage()
        try:
            message["From"], message["To"], message["Subject"] = self._sender, recipient, subject
        except ValueError:
            raise MailNotSent("InvalidHeader") from None
        # An encoded word (=?utf-8?q?…?=) can have a line end, which older Pythons write as it is.
        if any("\r" in value or "\n" in value for value in message.values()):
            raise MailNotSent("InvalidHeader")
        message["Date"] = format_datetime(self._clock.now())
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        await self._within_deadline(message)

    async def check(self) -> None:
        """Connects and signs in, as for a message. Raises MailNotSent."""
        await self._within_deadline(None)

    async def _within_deadline(self, message: EmailMessage | None) -> None:
        opened: list[smtplib.SMTP] = []
        try:
            async with asyncio.timeout(self._deadline):
                await asyncio.to_thread(self._deliver, message, opened)
        except (OSError, smtplib.SMTPException) as error:
            # What a server says may repeat the credentials.
            raise MailNotSent(type(error).__name__) from None
        finally:
            # Wakes the thread if the server has not answered; usually it is closed already.
            for connection in opened:
                _interrupt(connection)

    def _deliver(self, message: EmailMessage | None, opened: list[smtplib.SMTP]) -> None:
        server, timeout = self._server, self._deadline
        context = ssl.create_default_context()
        connection = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=timeout, context=context)
            if server.tls
            else smtplib.SMTP(server.host, server.port, timeout=timeout)
        )
        opened.append(connection)
        try:
            if server.starttls:
                connection.starttls(context=context)
            if server.user is not None:
                connection.login(server.user, server.password or "")
            if message is not None:
                connection.send_message(message)
        finally:
            with suppress(OSError, ValueError, smtplib.SMTPException):
                connection.quit()


def _interrupt(connection: smtplib.SMTP) -> None:
    # Closing would wait for the reading thread.
    if connection.sock is not None:
        with suppress(OSError):
            connection.sock.shutdown(socket.SHUT_RDWR)
