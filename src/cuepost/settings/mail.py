"""The settings about e-mail."""

import re
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import unquote, urlsplit

from cuepost.settings.database import DatabaseSettings
from cuepost.settings.kinds import SettingType, optional
from cuepost.settings.setting import Setting

_PORTS = {"smtp": 25, "smtp+starttls": 587, "smtps": 465}


@dataclass(frozen=True, slots=True, repr=False)
class SmtpUrl:
    """`smtps` has TLS from the start, `smtp+starttls` after the greeting, `smtp` none."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str | None = None


def _smtp_url(text: str) -> SmtpUrl:
    if not re.fullmatch(r"(smtp|smtps|smtp\+starttls)://[!-~]+", text):
        raise ValueError
    parts = urlsplit(text)
    try:
        port = parts.port
    except ValueError:
        raise ValueError from None
    if not parts.hostname or port == 0 or parts.path.strip("/") or parts.query or parts.fragment:
        raise ValueError
    if parts.username is not None and parts.scheme == "smtp":
        raise ValueError("credentials need TLS: use smtps:// or smtp+starttls://.")
    return SmtpUrl(
        parts.scheme,
        parts.hostname,
        port or _PORTS[parts.scheme],
        None if parts.username is None else unquote(parts.username),
        None if parts.password is None else unquote(parts.password),
    )


def _address(text: str) -> str:
    if not re.fullmatch(r"[^\s@<>]+@[^\s@<>]+", text):
        raise ValueError
    return text


SMTP_URL = SettingType(
    "`smtps://USER:PASSWORD@HOST:465`, `smtp+starttls://USER:PASSWORD@HOST:587` or `smtp://HOST:25`",
    _smtp_url,
    secret=True,
)
ADDRESS = SettingType("an e-mail address", _address)


@dataclass(frozen=True, slots=True, kw_only=True)
class MailSettings(DatabaseSettings):
    smtp_url: Annotated[
        SmtpUrl | None,
        Setting(
            optional(SMTP_URL),
            "",
            "The mail server for alerts about endpoints and for invitations. Empty: nothing is "
            "sent by e-mail; alerts are shown in the pages and sent as events.",
        ),
    ] = field(repr=False)
    smtp_from: Annotated[
        str | None,
        Setting(
            optional(ADDRESS),
            "",
            "The sender of e-mails. Empty: `cuepost@` and the host of `BASE_URL`.",
        ),
    ]
