"""The first schema."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("webhooks_enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("accounts_pkey")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", Id(), nullable=False),
        sa.Column("account_id", Id(), nullable=True),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("scopes", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.Column("revoked_at", Instant(), nullable=True),
        sa.Column("last_used_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("api_keys_pkey")),
    )
    op.create_index(op.f("api_keys_by_account_id"), "api_keys", ["account_id"], unique=False)
    op.create_table(
        "artifacts",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("project_id", Id(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("content_type", sa.Text(), nullable=False),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "account_id", "project_id", "position", name=op.f("artifacts_pkey")
        ),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "attempts",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("delivery_id", Id(), nullable=False),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("started_at", Instant(), nullable=False),
        sa.Column("duration_ms", sa.Double(), nullable=False),
        sa.Column("dns_ms", sa.Double(), nullable=True),
        sa.Column("connect_ms", sa.Double(), nullable=True),
        sa.Column("tls_ms", sa.Double(), nullable=True),
        sa.Column("first_byte_ms", sa.Double(), nullable=True),
        sa.Column("signed_with", sa.Text(), nullable=False),
        sa.Column("request_headers", sa.LargeBinary(), nullable=False),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_headers", sa.LargeBinary(), nullable=False),
        sa.Column("response_body", sa.LargeBinary(), nullable=False),
        sa.Column("response_truncated", sa.Boolean(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "outcome IN ('delivered', 'http_error', 'redirect', 'timeout', 'dns_error', 'connect_error', 'tls_error', 'blocked_destination', 'protocol_error')",
            name=op.f("attempts_outcome"),
        ),
        sa.CheckConstraint(
            "trigger IN ('automatic', 'manual', 'test')", name=op.f("attempts_trigger")
        ),
        sa.PrimaryKeyConstraint(
            "account_id", "delivery_id", "budget", "number", name=op.f("attempts_pkey")
        ),
        postgresql_partition_by="RANGE (delivery_id)",
    )
    op.create_table(
        "audit_entries",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("door", sa.Text(), nullable=False),
        sa.Column("address", sa.Text(), nullable=True),
        sa.Column("subject", sa.Text(), nullable=True),
        sa.Column("details", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("audit_entries_pkey")),
    )
    op.create_index(op.f("audit_entries_by_id"), "audit_entries", ["id"], unique=False)
    op.create_table(
        "bulk_retries",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("since", Instant(), nullable=False),
        sa.Column("until", Instant(), nullable=False),
        sa.Column("statuses", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("retried", sa.Integer(), nullable=False),
        sa.Column("skipped", sa.Integer(), nullable=False),
        sa.Column("position", Id(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.CheckConstraint(
            "state IN ('running', 'finished', 'cancelled')", name=op.f("bulk_retries_state")
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("bulk_retries_pkey")),
    )
    op.create_index(
        "bulk_retries_running",
        "bulk_retries",
        ["state"],
        unique=False,
        sqlite_where=sa.text("state = 'running'"),
        postgresql_where=sa.text("state = 'running'"),
    )
    op.create_table(
        "deliveries",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("event_id", Id(), nullable=False),
        sa.Column("event_type", sa.Text(), nullable=False),
        sa.Column("project_id", Id(), nullable=True),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("final_status", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("finished_at", Instant(), nullable=True),
        sa.CheckConstraint(
            "final_status IN ('delivered', 'failed', 'cancelled')",
            name=op.f("deliveries_final_status"),
        ),
        sa.CheckConstraint(
            "reason IN ('endpoint_disabled', 'project_deleted', 'project_access_expired')",
            name=op.f("deliveries_reason"),
        ),
        sa.CheckConstraint(
            "trigger IN ('automatic', 'manual', 'test')", name=op.f("deliveries_trigger")
        ),
        sa.CheckConstraint(
            "(final_status IS NULL) = (finished_at IS NULL)", name=op.f("deliveries_ended")
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("deliveries_pkey")),
        postgresql_partition_by="RANGE (id)",
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("deliveries_by_account_id_event_id"),
        "deliveries",
        ["account_id", "event_id"],
        unique=False,
    )
    op.create_index(
        op.f("deliveries_by_account_id_project_id_id"),
        "deliveries",
        ["account_id", "project_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("deliveries_by_account_id_webhook_id_id"),
        "deliveries",
        ["account_id", "webhook_id", "id"],
        unique=False,
    )
    op.create_index(
        "deliveries_by_status",
        "deliveries",
        ["account_id", "final_status", "id"],
        unique=False,
        sqlite_where=sa.text("final_status IS NOT NULL"),
        postgresql_where=sa.text("final_status IS NOT NULL"),
    )
    op.create_index(
        "deliveries_by_webhook_status",
        "deliveries",
        ["account_id", "webhook_id", "final_status", "id"],
        unique=False,
        sqlite_where=sa.text("final_status IS NOT NULL"),
        postgresql_where=sa.text("final_status IS NOT NULL"),
    )
    op.create_table(
        "endpoints",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("last_delivered_at", Instant(), nullable=True),
        sa.Column("failing_since", Instant(), nullable=True),
        sa.Column("deleted_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("endpoints_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "endpoints_by_deleted_at",
        "endpoints",
        ["deleted_at"],
        unique=False,
        sqlite_where=sa.text("deleted_at IS NOT NULL"),
        postgresql_where=sa.text("deleted_at IS NOT NULL"),
    )
    op.create_table(
        "events",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("project_id", Id(), nullable=True),
        sa.Column("occurred_at", Instant(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("events_pkey")),
        postgresql_partition_by="RANGE (id)",
    )
    op.create_index(
        op.f("events_by_account_id_project_id_id"),
        "events",
        ["account_id", "project_id", "id"],
        unique=False,
    )
    op.create_table(
        "idempotency_keys",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.LargeBinary(), nullable=False),
        sa.Column("sealed_answer", sa.LargeBinary(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "key", name=op.f("idempotency_keys_pkey")),
    )
    op.create_index(
        op.f("idempotency_keys_by_created_at"), "idempotency_keys", ["created_at"], unique=False
    )
    op.create_table(
        "projects",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("access_expires_at", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("deleted_at", Instant(), nullable=True),
        sa.CheckConstraint("kind IN ('video', 'transcript')", name=op.f("projects_kind")),
        sa.CheckConstraint("origin IN ('app', 'api', 'mcp')", name=op.f("projects_origin")),
        sa.CheckConstraint("stage IN ('processing', 'export')", name=op.f("projects_stage")),
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'exporting', 'completed', 'failed', 'cancelled')",
            name=op.f("projects_status"),
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("projects_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        "projects_by_access_expires_at",
        "projects",
        ["access_expires_at"],
        unique=False,
        sqlite_where=sa.text("access_expires_at IS NOT NULL AND deleted_at IS NULL"),
        postgresql_where=sa.text("access_expires_at IS NOT NULL AND deleted_at IS NULL"),
    )
    op.create_index(op.f("projects_by_id"), "projects", ["id"], unique=True)
    op.create_table(
        "queue",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("delivery_id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("event_id", Id(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.Column("lease_token", Id(), nullable=True),
        sa.Column("lease_expires_at", Instant(), nullable=True),
        sa.Column("stop_reason", sa.Text(), nullable=True),
        sa.CheckConstraint(
            "(state = 'delivering') = (lease_token IS NOT NULL)", name=op.f("queue_leased")
        ),
        sa.CheckConstraint(
            "state IN ('pending', 'delivering', 'retrying')", name=op.f("queue_state")
        ),
        sa.CheckConstraint(
            "stop_reason IN ('endpoint_disabled', 'project_deleted', 'project_access_expired')",
            name=op.f("queue_stop_reason"),
        ),
        sa.PrimaryKeyConstraint("account_id", "delivery_id", name=op.f("queue_pkey")),
        postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("queue_by_account_id_state_delivery_id"),
        "queue",
        ["account_id", "state", "delivery_id"],
        unique=False,
    )
    op.create_index(
        op.f("queue_by_account_id_webhook_id_state_delivery_id"),
        "queue",
        ["account_id", "webhook_id", "state", "delivery_id"],
        unique=False,
    )
    op.create_table(
        "reports",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("report_id", sa.Text(), nullable=False),
        sa.Column("event_id", Id(), nullable=True),
        sa.Column("notified", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "report_id", name=op.f("reports_pkey")),
    )
    op.create_index(
        op.f("reports_by_created_at"),
        "reports",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )
    op.create_table(
        "signing_secrets",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("hint", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint(
            "account_id", "webhook_id", "version", name=op.f("signing_secrets_pkey")
        ),
        sqlite_with_rowid=False,
    )
