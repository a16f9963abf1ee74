"""The schema: `account_id` leads every key, and history is partitioned by the day in its ids.

A delivery that is not ended has a row in `queue`, a small table with only what is live, and no
`final_status`. What has ended is in `deliveries` alone.
"""

from collections.abc import Iterable

import sqlalchemy as sa

from cuepost.adapters.storage.types import Id, Instant
from cuepost.domain.attempt import Outcome
from cuepost.domain.bulk_retry import BulkRetryState
from cuepost.domain.delivery import FINAL, LIVE, CancelReason, Trigger
from cuepost.domain.project import Origin, ProjectKind, ProjectStatus, Stage

metadata = sa.MetaData(
    naming_convention={
        "ix": "%(table_name)s_by_%(column_0_N_name)s",
        "ck": "%(table_name)s_%(constraint_name)s",
        "pk": "%(table_name)s_pkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
    }
)


def _one_of(column: str, values: Iterable[str]) -> sa.CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return sa.CheckConstraint(f"{column} IN ({listed})", name=column)


accounts = sa.Table(
    "accounts",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("webhooks_enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", Id, primary_key=True),
    sa.Column("account_id", Id, index=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("digest", sa.LargeBinary, nullable=False),
    sa.Column("scopes", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sa.Column("revoked_at", Instant),
    sa.Column("last_used_at", Instant),
)

projects = sa.Table(
    "projects",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("origin", sa.Text, nullable=False),
    sa.Column("status", sa.Text, nullable=False),
    sa.Column("stage", sa.Text, nullable=False),
    sa.Column("access_expires_at", Instant),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Column("deleted_at", Instant),
    _one_of("kind", ProjectKind),
    _one_of("origin", Origin),
    _one_of("status", ProjectStatus),
    _one_of("stage", Stage),
    # A milestone names the project alone, so its account must be found by the project's id.
    sa.Index(None, "id", unique=True),
    sqlite_with_rowid=False,
)
_EXPIRING = projects.c.access_expires_at.is_not(None) & projects.c.deleted_at.is_(None)
sa.Index(
    "projects_by_access_expires_at",
    projects.c.access_expires_at,
    sqlite_where=_EXPIRING,
    postgresql_where=_EXPIRING,
)

artifacts = sa.Table(
    "artifacts",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("project_id", Id, primary_key=True),
    sa.Column("position", sa.Integer, primary_key=True),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("key", sa.Text, nullable=False),
    sa.Column("content_type", sa.Text, nullable=False),
    sa.Column("size_bytes", sa.BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

endpoints = sa.Table(
    "endpoints",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("events", sa.Text, nullable=False),
    sa.Column("description", sa.Text, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("updated_at", Instant, nullable=False),
    sa.Column("last_delivered_at", Instant),
    sa.Column("failing_since", Instant),
    sa.Column("deleted_at", Instant),
    sqlite_with_rowid=False,
)
_DELETED = endpoints.c.deleted_at.is_not(None)
sa.Index(
    "endpoints_by_deleted_at",
    endpoints.c.deleted_at,
    sqlite_where=_DELETED,
    postgresql_where=_DELETED,
)

signing_secrets = sa.Table(
    "signing_secrets",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, primary_key=True),
    sa.Column("version", sa.Integer, primary_key=True),
    sa.Column("sealed", sa.LargeBinary, nullable=False),
    sa.Column("hint", sa.Text, nullable=False),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("expires_at", Instant),
    sqlite_with_rowid=False,
)

reports = sa.Table(
    "reports",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("report_id", sa.Text, primary_key=True),
    sa.Column("event_id", Id),
    sa.Column("notified", sa.Boolean, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Column("created_at", Instant, nullable=False),
    sa.Index(None, "created_at", postgresql_using="brin"),
)

events = sa.Table(
    "events",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("type", sa.Text, nullable=False),
    sa.Column("project_id", Id),
    sa.Column("occurred_at", Instant, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
    sa.Column("reason", sa.Text),
    sa.Index(None, "account_id", "project_id", "id"),
    postgresql_partition_by="RANGE (id)",
)

deliveries = sa.Table(
    "deliveries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("event_id", Id, nullable=False),
    sa.Column("event_type", sa.Text, nullable=False),
    sa.Column("project_id", Id),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("final_status", sa.Text),
    sa.Column("reason", sa.Text),
    sa.Column("attempt_count", sa.Integer, nullable=False),
    sa.Column("budget", sa.Integer, nullable=False),
    sa.Column("finished_at", Instant),
    _one_of("final_status", FINAL),
    _one_of("reason", CancelReason),
    _one_of("trigger", Trigger),
    sa.CheckConstraint("(final_status IS NULL) = (finished_at IS NULL)", name="ended"),
    sa.Index(None, "account_id", "webhook_id", "id"),
    sa.Index(None, "account_id", "project_id", "id"),
    sa.Index(None, "account_id", "event_id"),
    sqlite_with_rowid=False,
    postgresql_partition_by="RANGE (id)",
)
_ENDED = deliveries.c.final_status.is_not(None)
sa.Index(
    "deliveries_by_status",
    deliveries.c.account_id,
    deliveries.c.final_status,
    deliveries.c.id,
    sqlite_where=_ENDED,
    postgresql_where=_ENDED,
)
sa.Index(
    "deliveries_by_webhook_status",
    deliveries.c.account_id,
    deliveries.c.webhook_id,
    deliveries.c.final_status,
    deliveries.c.id,
    sqlite_where=_ENDED,
    postgresql_where=_ENDED,
)

queue = sa.Table(
    "queue",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("delivery_id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("event_id", Id, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("due_at", Instant, nullable=False),
    sa.Column("attempts_made", sa.Integer, nullable=False),
    sa.Column("lease_token", Id),
    sa.Column("lease_expires_at", Instant),
    sa.Column("stop_reason", sa.Text),
    _one_of("state", LIVE),
    _one_of("stop_reason", CancelReason),
    sa.CheckConstraint("(state = 'delivering') = (lease_token IS NOT NULL)", name="leased"),
    sa.Index(None, "account_id", "state", "delivery_id"),
    sa.Index(None, "account_id", "webhook_id", "state", "delivery_id"),
    sqlite_with_rowid=False,
    postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
)

attempts = sa.Table(
    "attempts",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("delivery_id", Id, primary_key=True),
    sa.Column("budget", sa.Integer, primary_key=True),
    sa.Column("number", sa.Integer, primary_key=True),
    sa.Column("trigger", sa.Text, nullable=False),
    sa.Column("started_at", Instant, nullable=False),
    sa.Column("duration_ms", sa.Double, nullable=False),
    sa.Column("dns_ms", sa.Double),
    sa.Column("connect_ms", sa.Double),
    sa.Column("tls_ms", sa.Double),
    sa.Column("first_byte_ms", sa.Double),
    sa.Column("signed_with", sa.Text, nullable=False),
    sa.Column("request_headers", sa.LargeBinary, nullable=False),
    sa.Column("response_status", sa.Integer),
    sa.Column("response_headers", sa.LargeBinary, nullable=False),
    sa.Column("response_body", sa.LargeBinary, nullable=False),
    sa.Column("response_truncated", sa.Boolean, nullable=False),
    sa.Column("outcome", sa.Text, nullable=False),
    _one_of("trigger", Trigger),
    _one_of("outcome", Outcome),
    postgresql_partition_by="RANGE (delivery_id)",
)

bulk_retries = sa.Table(
    "bulk_retries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("webhook_id", Id, nullable=False),
    sa.Column("since", Instant, nullable=False),
    sa.Column("until", Instant, nullable=False),
    sa.Column("statuses", sa.Text, nullable=False),
    sa.Column("state", sa.Text, nullable=False),
    sa.Column("total", sa.Integer, nullable=False),
    sa.Column("retried", sa.Integer, nullable=False),
    sa.Column("skipped", sa.Integer, nullable=False),
    sa.Column("position", Id),
    sa.Column("created_at", Instant, nullable=False),
    sa.Column("finished_at", Instant),
    _one_of("state", BulkRetryState),
)
_RUNNING = bulk_retries.c.state == sa.literal_column("'running'")
sa.Index(
    "bulk_retries_running",
    bulk_retries.c.state,
    sqlite_where=_RUNNING,
    postgresql_where=_RUNNING,
)

idempotency_keys = sa.Table(
    "idempotency_keys",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("fingerprint", sa.LargeBinary, nullable=False),
    sa.Column("sealed_answer", sa.LargeBinary),
    sa.Column("created_at", Instant, nullable=False, index=True),
)

audit_entries = sa.Table(
    "audit_entries",
    metadata,
    sa.Column("account_id", Id, primary_key=True),
    sa.Column("id", Id, primary_key=True),
    sa.Column("action", sa.Text, nullable=False),
    sa.Column("actor", sa.Text, nullable=False),
    sa.Column("door", sa.Text, nullable=False),
    sa.Column("address", sa.Text),
    sa.Column("subject", sa.Text),
    sa.Column("details", sa.JSON, nullable=False),
    sa.Index(None, "id"),
)

PARTITIONED = (events, deliveries, attempts)
