"""The test inbox: a receiver inside the service, whose answer the user chooses."""

import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

TOKEN_BYTES = 24
KEPT_MESSAGES = 100
_TOKEN = re.compile(r"[A-Za-z0-9_-]{32}")


class InboxAnswer(StrEnum):
    """How the inbox answers a request, which it stores in any case."""

    OK = "ok"
    NOT_FOUND = "not_found"
    SERVER_ERROR = "server_error"
    SLOW = "slow"
    CLOSE = "close"
    REDIRECT = "redirect"


@dataclass(frozen=True, slots=True)
class Inbox:
    """An account has one inbox; `token` is the unguessable end of its URL."""

    account_id: UUID
    token: str
    answer: InboxAnswer
    created_at: datetime


@dataclass(frozen=True, slots=True)
class InboxMessage:
    """A request as it arrived; `verified_with` are the hints of the secrets that signed it."""

    account_id: UUID
    id: UUID
    received_at: datetime
    headers: tuple[tuple[str, str], ...]
    body: bytes
    verified_with: tuple[str, ...]
    answer: InboxAnswer


def compose_token(random_bytes: bytes) -> str:
    return urlsafe_b64encode(random_bytes).decode()


def inbox_token_in(text: str, prefix: str) -> str | None:
    """The token, if the text is the prefix followed by a token."""
    token = text.removeprefix(prefix)
    return token if text.startswith(prefix) and _TOKEN.fullmatch(token) else None
