"""Invitations: how a person becomes a member of an account."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuepost.domain.access import Role
from cuepost.domain.errors import LastOwner
from cuepost.domain.person import User

INVITATION_LIFE = timedelta(days=7)
MOST_INVITATIONS = 100


@dataclass(frozen=True, slots=True)
class Invitation:
    """It is used once. Without an e-mail it is open: the person who has the link chooses one."""

    account_id: UUID
    id: UUID
    digest: bytes
    role: Role
    email: str | None
    created_at: datetime
    expires_at: datetime

    def is_live(self, now: datetime) -> bool:
        return self.expires_at > now

    def __repr__(self) -> str:
        return f"Invitation({self.id})"


def require_owner_without(user: User, owners: Collection[User]) -> None:
    """Refused if no owner is left once this user is none."""
    if user.role is Role.OWNER and all(owner.id == user.id for owner in owners):
        raise LastOwner
