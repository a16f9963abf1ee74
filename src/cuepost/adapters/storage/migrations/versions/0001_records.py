"""What people own, and what guards it."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    _accounts()
    _api_keys()
    _artifacts()
    _audit_entries()
    _endpoints()
    _idempotency_keys()
    _projects()
    _reports()
    _signing_secrets()


def _accounts() -> None:
    op.create_table(
        "accounts",
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("webhooks_enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("accounts_pkey")),
    )


def _api_keys() -> None:
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


def _artifacts() -> None:
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


def _audit_entries() -> None:
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


def _endpoints() -> None:
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
        sa.CheckConstraint("deleted_at IS NULL OR NOT enabled", name=op.f("endpoints_deleted")),
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


def _idempotency_keys() -> None:
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


def _projects() -> None:
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
        sa.Column("access_ended_at", Instant(), nullable=True),
        sa.CheckConstraint("kind IN ('video', 'transcript')", name=op.f("projects_kind")),
        sa.CheckConstraint("origin IN ('app', 'api', 'mcp')", name=op.f("projects_origin")),
        sa.CheckConstraint("stage IN ('processing', 'export')", name=op.f("projects_stage")),
        sa.CheckConstraint(
            "status IN ('queued', 'processing', 'ready', 'exporting', 'completed', 'failed', "
            "'cancelled')",
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
        sqlite_where=sa.text(
            "access_expires_at IS NOT NULL AND access_ended_at IS NULL AND deleted_at IS NULL"
        ),
        postgresql_where=sa.text(
            "access_expires_at IS NOT NULL AND access_ended_at IS NULL AND deleted_at IS NULL"
        ),
    )
    op.create_index(op.f("projects_by_id"), "projects", ["id"], unique=True)


def _reports() -> None:
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


def _signing_secrets() -> None:
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
