"""E-mail over SMTP, with the standard library, in a thread of its own for each message."""

import asyncio
import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import format_datetime

from cuepost.ports.mail import MailNotSent
from cuepost.ports.system import Clock

TIMEOUT_SECONDS = 20.0


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
    def __init__(self, server: SmtpServer, sender: str, clock: Clock) -> None:
        self._server, self._sender, self._clock = server, sender, clock

    async def send(self, recipient: str, subject: str, text: str) -> None:
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = self._sender, recipient, subject
        message["Date"] = format_datetime(self._clock.now())
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        try:
            await asyncio.to_thread(self._deliver, message)
        except (OSError, smtplib.SMTPException) as error:
            # What a server says may repeat the credentials.
            raise MailNotSent(type(error).__name__) from None

    async def check(self) -> None:
        """Connects and signs in, as for a message. Raises MailNotSent."""
        try:
            await asyncio.to_thread(self._deliver, None)
        except (OSError, smtplib.SMTPException) as error:
            raise MailNotSent(type(error).__name__) from None

    def _deliver(self, message: EmailMessage | None) -> None:
        server = self._server
        context = ssl.create_default_context()
        connect = (
            smtplib.SMTP_SSL(server.host, server.port, timeout=TIMEOUT_SECONDS, context=context)
            if server.tls
            else smtplib.SMTP(server.host, server.port, timeout=TIMEOUT_SECONDS)
        )
        try:
            if server.starttls:
                connect.starttls(context=context)
            if server.user is not None:
                connect.login(server.user, server.password or "")
            if message is not None:
                connect.send_message(message)
        finally:
            with suppress(OSError, smtplib.SMTPException):
                connect.quit()
