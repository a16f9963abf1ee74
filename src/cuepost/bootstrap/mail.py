"""The mailer that the settings ask for, and its check."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cuepost.interfaces.cli.runtime import CheckResult, failure, fine
from cuepost.ports.mail import MailNotSent
from cuepost.ports.system import Clock
from cuepost.settings import Settings

if TYPE_CHECKING:
    from cuepost.adapters.smtp_mail import SmtpMailer

_REASONS = {
    "ConnectionRefusedError": "takes no connection",
    "gaierror": "has a name that cannot be resolved",
    "SMTPAuthenticationError": "refuses the user or the password",
    "SMTPNotSupportedError": "does not offer STARTTLS or a way to sign in",
    "SSLCertVerificationError": "has a certificate that is not valid for its name",
    "TimeoutError": "does not answer in time",
}


def smtp_mailer(settings: Settings, clock: Clock) -> "SmtpMailer | None":
    url = settings.smtp_url
    if url is None:
        return None
    # Imported here, because most services send no mail.
    from cuepost.adapters.smtp_mail import (  # noqa: PLC0415  # see above
        SmtpMailer,
        SmtpServer,
    )

    server = SmtpServer(
        url.host,
        url.port,
        tls=url.scheme == "smtps",
        starttls=url.scheme == "smtp+starttls",
        user=url.user,
        password=url.password,
    )
    sender = settings.smtp_from or f"cuepost@{urlsplit(settings.base_url).hostname}"
    return SmtpMailer(server, sender, clock)


async def mail_checks(settings: Settings, clock: Clock) -> AsyncIterator[CheckResult]:
    mailer = smtp_mailer(settings, clock)
    if mailer is None:
        return
    try:
        await mailer.check()
    except MailNotSent as error:
        yield failure(
            "e-mail",
            f"The mail server of CUEPOST_SMTP_URL {_REASONS.get(str(error), f'fails: {error}')}.",
            "Check its host, port, TLS and credentials. Until then e-mails wait.",
        )
    else:
        yield fine("e-mail", "The mail server accepts connections.")
