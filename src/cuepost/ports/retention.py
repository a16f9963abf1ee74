"""Deleting what has expired, and returning the disk space."""

from datetime import datetime
from enum import StrEnum
from typing import Protocol


class Expiring(StrEnum):
    """What is kept for a limited time."""

    HISTORY = "history"
    COUNTS = "counts of deliveries"
    SHORT_COUNTS = "counts of short intervals"
    ALERTS = "alerts that are over"
    BULK_RETRIES = "bulk retries"
    REPORTS = "reports"
    IDEMPOTENCY_KEYS = "idempotency keys"
    AUDIT_TRAIL = "the audit trail"
    SECRETS = "expired secrets"
    SESSIONS = "ended sessions"
    SIGN_IN_LINKS = "expired sign-in links"
    INVITATIONS = "expired invitations"
    INVITATION_MAILS = "e-mails of expired invitations"
    PORTAL_LINKS = "ended portal links"
    SECRET_REVEALS = "secrets that were not revealed"
    INBOX_MESSAGES = "messages in test inboxes"


class Retention(Protocol):
    """The checks are small reads, and the steps small writes."""

    async def any_before(self, what: Expiring, instant: datetime) -> bool:
        """Whether `delete_before` would find something."""
        ...

    async def delete_before(self, what: Expiring, instant: datetime, rows: int) -> bool:
        """Delete about `rows` old rows that are no longer in use.

        Returns False if nothing is left, or if another process is deleting.
        """
        ...

    async def lacks_days(self, now: datetime) -> bool:
        """Whether `Store.prepare_days` has something to do."""
        ...

    async def has_deleted_endpoints(self) -> bool: ...

    async def has_free_pages(self) -> bool:
        """Whether the store has enough unused pages to be worth returning to the file system."""
        ...

    async def return_free_pages(self, pages: int) -> bool:
        """Return up to `pages` unused pages; return True if the store became smaller."""
        ...
