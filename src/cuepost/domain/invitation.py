"""Invitations: how a person becomes a member of an account."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.access import Role
from cuepost.domain.errors import LastOwner
from cuepost.domain.mail import Message
from cuepost.domain.person import User

INVITATION_LIFE = timedelta(days=7)
MOST_INVITATIONS = 100


@dataclass(frozen=True, slots=True)
class Invitation:
    """It is used once. Without an e-mail it is open: the person who has the link chooses one.

    `email_queued` while it waits to be sent by e-mail.
    """

    account_id: UUID
    id: UUID
    digest: bytes
    role: Role
    email: str | None
    created_at: datetime
    expires_at: datetime
    email_queued: bool = False

    def is_live(self, now: datetime) -> bool:
        return self.expires_at > now

    def __repr__(self) -> str:
        return f"Invitation({self.id})"


@dataclass(frozen=True, slots=True)
class InvitationMail:
    """An invitation, by its id, that waits to be sent; `sealed` is the token of its link."""

    account_id: UUID
    id: UUID
    sealed: bytes
    due_at: datetime
    expires_at: datetime
    attempts_made: int = 0

    def __repr__(self) -> str:
        return f"InvitationMail({self.id})"


def invitation_message(account: str, role: Role, url: str, expires_at: str) -> Message:
    # A header has one line.
    name = " ".join(account.split())
    return Message(
        f"[cuepost] You are invited to {name}",
        f"You are invited to the webhook settings of {name} as {role}. To accept, open this link "
        f"and choose a password:\n\n{url}\n\nThe link works once, until {expires_at}. If you "
        "did not expect this invitation, ignore this message.\n",
    )


def require_owner_without(user: User, owners: Collection[User]) -> None:
    """Refused if no owner is left once this user is none."""
    if user.role is Role.OWNER and all(owner.id == user.id for owner in owners):
        raise LastOwner
