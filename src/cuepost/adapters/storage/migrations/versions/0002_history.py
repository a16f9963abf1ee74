"""Events, deliveries, attempts and the queue."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _attempts()
    _bulk_retries()
    _deliveries()
    _events()
    _lanes()
    _queue()
    _workers()


def _attempts() -> None:
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
            "outcome IN ('delivered', 'http_error', 'redirect', 'timeout', 'dns_error', "
            "'connect_error', 'tls_error', 'blocked_destination', 'protocol_error')",
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


def _bulk_retries() -> None:
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
            "(state = 'running') = (finished_at IS NULL)", name=op.f("bulk_retries_ended")
        ),
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


def _deliveries() -> None:
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
            "(reason IS NOT NULL) = (final_status IS NOT NULL AND final_status = 'cancelled')",
            name=op.f("deliveries_cancelled"),
        ),
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
        op.f("deliveries_by_account_id_event_id_id"),
        "deliveries",
        ["account_id", "event_id", "id"],
        unique=False,
    )
    op.create_index(
        op.f("deliveries_by_account_id_event_type_id"),
        "deliveries",
        ["account_id", "event_type", "id"],
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


def _events() -> None:
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
    op.create_index(
        op.f("events_by_account_id_type_id"), "events", ["account_id", "type", "id"], unique=False
    )


def _lanes() -> None:
    op.create_table(
        "lanes",
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("worker_id", Id(), nullable=False),
        sa.PrimaryKeyConstraint("webhook_id", name=op.f("lanes_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("lanes_by_worker_id"), "lanes", ["worker_id"], unique=False)


def _queue() -> None:
    op.create_table(
        "queue",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("delivery_id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("event_id", Id(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("trigger", sa.Text(), nullable=False),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("lease_token", Id(), nullable=True),
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
        sa.CheckConstraint(
            "stop_reason IS NULL OR state = 'delivering'", name=op.f("queue_stopped")
        ),
        sa.PrimaryKeyConstraint("account_id", "delivery_id", name=op.f("queue_pkey")),
        postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
        sqlite_with_rowid=False,
    )
    op.create_index(
        "queue_by_due_at",
        "queue",
        ["due_at"],
        unique=False,
        sqlite_where=sa.text("state != 'delivering'"),
        postgresql_where=sa.text("state != 'delivering'"),
    )
    op.create_index(
        "queue_by_lane",
        "queue",
        ["webhook_id", "state", "due_at"],
        unique=False,
        sqlite_where=sa.text("state != 'delivering'"),
        postgresql_where=sa.text("state != 'delivering'"),
    )
    op.create_index(
        "queue_by_status",
        "queue",
        ["account_id", "state", "delivery_id"],
        unique=False,
        sqlite_where=sa.text("state != 'delivering'"),
        postgresql_where=sa.text("state != 'delivering'"),
    )
    op.create_index(
        "queue_by_webhook_status",
        "queue",
        ["account_id", "webhook_id", "state", "delivery_id"],
        unique=False,
        sqlite_where=sa.text("state != 'delivering'"),
        postgresql_where=sa.text("state != 'delivering'"),
    )
    op.create_index(
        "queue_in_flight",
        "queue",
        ["lease_token"],
        unique=False,
        sqlite_where=sa.text("lease_token IS NOT NULL"),
        postgresql_where=sa.text("lease_token IS NOT NULL"),
    )


def _workers() -> None:
    op.create_table(
        "workers",
        sa.Column("id", Id(), nullable=False),
        sa.Column("alive_until", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("workers_pkey")),
        sqlite_with_rowid=False,
    )
