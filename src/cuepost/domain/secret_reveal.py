"""A secret that waits for its owner at an address that shows it once."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

REVEAL_LIFE = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class SecretReveal:
    """`sealed` opens with the reveal's own id, so no other row can stand in for it."""

    account_id: UUID
    id: UUID
    webhook_id: UUID
    digest: bytes
    sealed: bytes
    expires_at: datetime

    def __repr__(self) -> str:
        return f"SecretReveal({self.id})"
