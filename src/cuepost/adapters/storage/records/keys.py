"""The tables whose rows belong to an account, with their primary keys."""

from collections.abc import Mapping

OWNED: Mapping[str, tuple[str, ...]] = {
    "account_moves": ("account_id",),
    "alert_mails": ("account_id", "webhook_id", "kind", "since", "number", "user_id"),
    "alerts": ("account_id", "webhook_id", "kind", "since"),
    "api_keys": ("id",),
    "artifacts": ("account_id", "project_id", "position"),
    "attempts": ("account", "delivery_id", "budget", "number"),
    "audit_entries": ("account_id", "id"),
    "bulk_retries": ("account_id", "id"),
    "deliveries": ("account", "id"),
    "delivery_counts": ("account", "endpoint", "minutes", "since"),
    "endpoints": ("number",),
    "events": ("account", "id"),
    "idempotency_keys": ("account_id", "key_id", "key"),
    "inbox_messages": ("account_id", "id"),
    "inboxes": ("account_id",),
    "invitation_mails": ("account_id", "id"),
    "invitations": ("account_id", "id"),
    "listener_events": ("account_id", "listener_id", "event_id"),
    "listeners": ("account_id", "id"),
    "portal_links": ("account_id", "id"),
    "projects": ("account_id", "id"),
    "queue": ("account", "id"),
    "reports": ("account", "report_id"),
    "secret_reveals": ("account_id", "id"),
    "sessions": ("account_id", "id"),
    "sign_in_links": ("account_id", "id"),
    "signing_secrets": ("account_id", "webhook_id", "version"),
    "users": ("account_id", "id"),
}


def owner_in(table: str) -> str:
    """The column with the number or the id of the account."""
    return "account" if OWNED[table][0] == "account" else "account_id"
