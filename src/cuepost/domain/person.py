"""Users of the settings pages, their sessions, and one-time sign-in links."""

import hashlib
import re
from base64 import urlsafe_b64encode
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.access import Role
from cuepost.domain.errors import FieldError, Forbidden, Invalid

OPAQUE_TOKEN_BYTES = 32
SESSION_LIFE = timedelta(days=14)
# Shorter, so that a person who has left the provider is out within a day.
PROVIDER_SESSION_LIFE = timedelta(days=1)
LINK_LIFE = timedelta(hours=24)
NEW_PASSWORD_LIFE = timedelta(hours=1)
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 200
LONGEST_EMAIL = 254

EMAIL = r"[^@\s\x00-\x1f\x7f-\x9f]+@[^@\s\x00-\x1f\x7f-\x9f]+\.[^@\s\x00-\x1f\x7f-\x9f.]+"
_EMAIL = re.compile(EMAIL)


class PasswordSignInOff(Forbidden):
    """Passwords are switched off in this service; an operator can create a one-time link."""

    code = "password_sign_in_off"


@dataclass(frozen=True, slots=True)
class User:
    """A user of an account, who signs in by password or with an OpenID provider.

    A user who can do neither needs a link to sign in. `external_id` is what a host product calls
    the user; it is unique within the account. `oidc_issuer` and `oidc_subject` are who the user is
    at the provider.
    """

    account_id: UUID
    id: UUID
    created_at: datetime
    email: str | None = None
    password_hash: str | None = None
    role: Role = Role.OWNER
    wants_alerts: bool = True
    external_id: str | None = None
    oidc_issuer: str | None = None
    oidc_subject: str | None = None

    def can_sign_in_alone(self, with_password: bool) -> bool:
        has_password = self.email is not None and self.password_hash is not None
        return (with_password and has_password) or self.oidc_subject is not None

    def with_credentials(self, email: str, password_hash: str) -> "User":
        return replace(self, email=email, password_hash=password_hash)

    def __repr__(self) -> str:
        return f"User({self.id})"


@dataclass(frozen=True, slots=True)
class Session:
    account_id: UUID
    id: UUID
    user_id: UUID
    digest: bytes
    created_at: datetime
    expires_at: datetime
    by_link: bool = False
    by_portal: bool = False

    def is_live(self, now: datetime) -> bool:
        return self.expires_at > now

    def may_replace_password(self, now: datetime) -> bool:
        """Whether the old password is not needed: for an hour after a one-time link was used."""
        return self.by_link and now < self.created_at + NEW_PASSWORD_LIFE

    def __repr__(self) -> str:
        return f"Session({self.id})"


@dataclass(frozen=True, slots=True)
class SignInLink:
    account_id: UUID
    id: UUID
    user_id: UUID
    digest: bytes
    expires_at: datetime

    def __repr__(self) -> str:
        return f"SignInLink({self.id})"


def compose_opaque_token(secret: bytes) -> str:
    """The token of a cookie or a link; only its digest is stored."""
    return urlsafe_b64encode(secret).decode().rstrip("=")


def opaque_token_digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "replace")).digest()


def checked_email(text: str) -> str:
    """The address in lower case, otherwise as the user typed it."""
    email = text.strip().lower()
    if len(email) > LONGEST_EMAIL or not _EMAIL.fullmatch(email):
        raise Invalid(
            FieldError("email", "email_invalid", "Write an e-mail address such as ada@example.com.")
        )
    return email


def checked_password(text: str) -> str:
    if not SHORTEST_PASSWORD <= len(text) <= LONGEST_PASSWORD:
        raise Invalid(
            FieldError(
                "password",
                "password_length",
                f"Choose {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters; "
                "a few words in a row are easy to remember.",
            )
        )
    return text
