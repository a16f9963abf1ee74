"""A new signing secret that a page shows once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

REVEAL_LIFE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SecretReveal:
    """`sealed` is encrypted for this id, so the value of another row cannot be used for it."""

    account_id: UUID
    id: UUID
    webhook_id: UUID
    digest: bytes
    sealed: bytes
    expires_at: datetime

    def __repr__(self) -> str:
        return f"SecretReveal({self.id})"
