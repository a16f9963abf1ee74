"""The audit trail: who did what, when, and from which address."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

RETENTION_DAYS = 400


class Action(StrEnum):
    ACCOUNT_CREATED = "account.created"
    ACCOUNT_CHANGED = "account.changed"
    ERASURE_STARTED = "account.erasure_started"
    ACCESS_OPENED = "account.access_opened"
    ACCESS_CLOSED = "account.access_closed"
    MOVE_STARTED = "account.move_started"
    MOVE_ABORTED = "account.move_aborted"
    MOVED = "account.moved"
    ARRIVED = "account.arrived"
    KEY_CREATED = "key.created"
    KEY_REVOKED = "key.revoked"
    WEBHOOK_CREATED = "webhook.created"
    WEBHOOK_CHANGED = "webhook.changed"
    WEBHOOK_ENABLED = "webhook.enabled"
    WEBHOOK_DISABLED = "webhook.disabled"
    WEBHOOK_DELETED = "webhook.deleted"
    SECRET_ROTATED = "webhook.secret_rotated"
    OVERLAP_ENDED = "webhook.overlap_ended"
    SECRET_REVEALED = "webhook.secret_revealed"
    TEST_SENT = "webhook.test_sent"
    DELIVERY_RETRIED = "delivery.retried"
    BULK_RETRY_STARTED = "bulk_retry.started"
    BULK_RETRY_CANCELLED = "bulk_retry.cancelled"
    LISTENER_CREATED = "listener.created"
    LISTENER_DELETED = "listener.deleted"
    PROJECT_DELETED = "project.deleted"
    PROJECT_REHEARSED = "project.rehearsed"
    LINK_MADE = "user.sign_in_link_made"
    SIGNED_IN = "user.signed_in"
    SIGN_IN_REFUSED = "user.sign_in_refused"
    SIGNED_OUT = "user.signed_out"
    CREDENTIALS_CHANGED = "user.credentials_changed"
    IDENTITY_CONNECTED = "user.identity_connected"
    MEMBER_INVITED = "member.invited"
    MEMBER_ADDED = "member.added"
    MEMBER_CHANGED = "member.changed"
    MEMBER_JOINED = "member.joined"
    ROLE_CHANGED = "member.role_changed"
    ALERTS_CHANGED = "member.alerts_changed"
    MEMBER_REMOVED = "member.removed"
    INVITATION_RESENT = "invitation.resent"
    INVITATION_REVOKED = "invitation.revoked"
    PORTAL_LINK_CREATED = "portal.link_created"
    PORTAL_LINK_REVOKED = "portal.link_revoked"
    PORTAL_SESSIONS_ENDED = "portal.sessions_ended"


def group_of(action: Action) -> str:
    return action.partition(".")[0]


GROUPS = tuple(dict.fromkeys(group_of(action) for action in Action))


def actions_in(choice: str) -> frozenset[Action]:
    """The action of this name, or those of a group such as `webhook`; none of an unknown name."""
    return frozenset(action for action in Action if choice in (action, group_of(action)))


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """`actor_name` is what the actor was called then: a user's e-mail, the name of a key."""

    account_id: UUID
    id: UUID
    action: Action
    actor: str
    interface: str
    address: str | None
    subject: str | None
    details: Mapping[str, str]
    at: datetime
    actor_name: str | None = None
