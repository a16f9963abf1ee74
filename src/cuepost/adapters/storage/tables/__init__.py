"""The schema. Every unique key of rows that accounts own contains the account, with the exceptions
of decision 0048, and history is partitioned by the day in its ids.

A delivery has one row: in `queue`, a small table, while it is live, and in `deliveries` once it has
ended.
"""

from cuepost.adapters.storage.tables.alerting import alert_mails, alerts
from cuepost.adapters.storage.tables.guards import audit_entries, idempotency_keys, reports
from cuepost.adapters.storage.tables.history import (
    PARTITIONED,
    attempts,
    bulk_retries,
    deliveries,
    delivery_counts,
    events,
    lanes,
    queue,
    workers,
)
from cuepost.adapters.storage.tables.listening import listener_events, listeners
from cuepost.adapters.storage.tables.metadata import metadata
from cuepost.adapters.storage.tables.owned import (
    account_moves,
    accounts,
    api_keys,
    artifacts,
    endpoints,
    projects,
    signing_secrets,
)
from cuepost.adapters.storage.tables.people import (
    inbox_messages,
    inboxes,
    invitation_mails,
    invitations,
    portal_links,
    secret_reveals,
    sessions,
    sign_in_attempts,
    sign_in_links,
    users,
)

__all__ = [
    "PARTITIONED",
    "account_moves",
    "accounts",
    "alert_mails",
    "alerts",
    "api_keys",
    "artifacts",
    "attempts",
    "audit_entries",
    "bulk_retries",
    "deliveries",
    "delivery_counts",
    "endpoints",
    "events",
    "idempotency_keys",
    "inbox_messages",
    "inboxes",
    "invitation_mails",
    "invitations",
    "lanes",
    "listener_events",
    "listeners",
    "metadata",
    "portal_links",
    "projects",
    "queue",
    "reports",
    "secret_reveals",
    "sessions",
    "sign_in_attempts",
    "sign_in_links",
    "signing_secrets",
    "users",
    "workers",
]
