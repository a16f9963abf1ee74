"""What leaves the store by itself once it is old, and the room that it leaves behind."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Expiring(StrEnum):
    """What is kept for a time and then forgotten."""

    HISTORY = "history"
    BULK_RETRIES = "bulk retries"
    REPORTS = "reports"
    IDEMPOTENCY_KEYS = "idempotency keys"
    AUDIT_TRAIL = "the audit trail"
    SECRETS = "expired secrets"
    SESSIONS = "ended sessions"
    SIGN_IN_LINKS = "expired sign-in links"
    SECRET_REVEALS = "secrets nobody came for"
    INBOX_MESSAGES = "messages in test inboxes"


class Retention(Protocol):
    """Each look is a small read, and each step a small write."""

    async def any_before(self, what: Expiring, instant: datetime) -> bool:
        """Whether a step would find something that is older and not in use any more."""
        ...

    async def delete_before(self, what: Expiring, instant: datetime, rows: int) -> bool:
        """Forget about that many; False when nothing was left to do, or others are doing it."""
        ...

    async def lacks_days(self, now: datetime) -> bool:
        """Whether `Store.prepare_days` has something to do."""
        ...

    async def has_deleted_endpoints(self) -> bool: ...

    async def has_spare_room(self) -> bool:
        """Whether the store holds much more of the disk than it needs, and can give it back."""
        ...

    async def give_room_back(self, pages: int) -> bool:
        """Whether that made the store smaller."""
        ...
