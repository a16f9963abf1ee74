"""One row for each delivery, numbers for accounts and endpoints, codes for closed lists.

The old history is put aside under other names here; `migrations/old_history.py` moves its rows,
some at a time, once this revision is committed.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.migrations import old_columns, old_history
from cuepost.adapters.storage.types import Id, Instant

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    old_history.put_aside(op.get_bind())
    _number_accounts()
    _number_endpoints()
    _code_projects()
    _events()
    _deliveries()
    _attempts()
    _queue()
    _lanes()
    _reports()
    old_history.move_queue(op.get_bind())
    old_history.drop_empty(op.get_bind())


def _number_accounts() -> None:
    op.execute("CREATE TABLE old_accounts AS SELECT * FROM accounts")
    op.drop_table("accounts")
    op.create_table(
        "accounts",
        sa.Column("number", sa.Integer(), sa.Identity(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("webhooks_enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("accounts_pkey")),
        sa.UniqueConstraint("id", name=op.f("accounts_id_key")),
        sqlite_autoincrement=True,
    )
    _copy("accounts", "id, name, webhooks_enabled, created_at")


def _number_endpoints() -> None:
    op.execute("CREATE TABLE old_endpoints AS SELECT * FROM endpoints")
    op.drop_table("endpoints")
    op.create_table(
        "endpoints",
        sa.Column("number", sa.Integer(), sa.Identity(), nullable=False),
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
        sa.PrimaryKeyConstraint("number", name=op.f("endpoints_pkey")),
        sa.UniqueConstraint("account_id", "id", name=op.f("endpoints_account_id_id_key")),
        sqlite_autoincrement=True,
    )
    _partial_index("endpoints_by_deleted_at", "endpoints", ["deleted_at"], "deleted_at IS NOT NULL")
    _copy(
        "endpoints",
        "account_id, id, url, events, description, enabled, created_at, updated_at, "
        "last_delivered_at, failing_since, deleted_at",
    )


def _copy(table: str, columns: str) -> None:
    """In the order of ids, so that numbers are given in the order of age."""
    op.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM old_{table} ORDER BY id")
    op.drop_table(f"old_{table}")


def _code_projects() -> None:
    op.execute("CREATE TABLE old_projects AS SELECT * FROM projects")
    op.drop_table("projects")
    op.create_table(
        "projects",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.SmallInteger(), nullable=False),
        sa.Column("origin", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("stage", sa.SmallInteger(), nullable=False),
        sa.Column("access_expires_at", Instant(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("updated_at", Instant(), nullable=False),
        sa.Column("deleted_at", Instant(), nullable=True),
        sa.Column("access_ended_at", Instant(), nullable=True),
        sa.Column("exported_at", Instant(), nullable=True),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("projects_pkey")),
        sqlite_with_rowid=False,
    )
    columns = old_columns.PROJECT_COLUMNS
    op.execute(
        f"INSERT INTO projects ({', '.join(columns)}) "
        f"SELECT {', '.join(columns.values())} FROM old_projects AS old"
    )
    op.drop_table("old_projects")
    op.create_index(op.f("projects_by_id"), "projects", ["id"], unique=True)
    _partial_index(
        "projects_by_access_expires_at",
        "projects",
        ["access_expires_at"],
        "access_expires_at IS NOT NULL AND access_ended_at IS NULL AND deleted_at IS NULL",
    )


def _events() -> None:
    op.create_table(
        "events",
        sa.Column("account", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("type", sa.SmallInteger(), nullable=False),
        sa.Column("project_id", Id(), nullable=True),
        sa.Column("occurred_at", Instant(), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column("reason", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("account", "id", name=op.f("events_pkey")),
        postgresql_partition_by="RANGE (id)",
        sqlite_with_rowid=False,
    )
    for second in ("project_id", "type"):
        name = op.f(f"events_by_account_{second}_id")
        op.create_index(name, "events", ["account", second, "id"], unique=False)


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        *_delivery_columns(),
        sa.Column("reason", sa.SmallInteger(), nullable=True),
        sa.Column("finished_at", Instant(), nullable=False),
        *_attempt_columns(nullable=True),
        sa.PrimaryKeyConstraint("account", "id", name=op.f("deliveries_pkey")),
        postgresql_partition_by="RANGE (id)",
        sqlite_with_rowid=False,
    )
    for columns in (["endpoint", "status"], ["event_id"], ["event_type"]):
        name = op.f(f"deliveries_by_account_{'_'.join(columns)}_id")
        op.create_index(name, "deliveries", ["account", *columns, "id"], unique=False)
    _partial_index(
        "deliveries_not_delivered", "deliveries", ["account", "status", "id"], "status != 4"
    )


def _attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("account", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("delivery_id", Id(), nullable=False),
        sa.Column("budget", sa.Integer(), nullable=False),
        *_attempt_columns(nullable=False),
        sa.Column("trigger", sa.SmallInteger(), nullable=False),
        sa.Column("held_by", Id(), nullable=True),
        sa.PrimaryKeyConstraint(
            "account", "delivery_id", "budget", "number", name=op.f("attempts_pkey")
        ),
        postgresql_partition_by="RANGE (delivery_id)",
        sqlite_with_rowid=False,
    )


def _queue() -> None:
    op.create_table(
        "queue",
        *_delivery_columns(),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.Column("worker", Id(), nullable=True),
        sa.Column("stop_reason", sa.SmallInteger(), nullable=True),
        sa.PrimaryKeyConstraint("account", "id", name=op.f("queue_pkey")),
        postgresql_with={"fillfactor": 70, "autovacuum_vacuum_scale_factor": 0.02},
        sqlite_with_rowid=False,
    )
    for name, columns in (
        ("queue_by_lane", ["endpoint", "status", "due_at"]),
        ("queue_by_due_at", ["due_at"]),
        ("queue_by_status", ["account", "status", "id"]),
        ("queue_by_endpoint_status", ["account", "endpoint", "status", "id"]),
    ):
        _partial_index(name, "queue", columns, "status != 2")
    _partial_index("queue_in_flight", "queue", ["worker"], "worker IS NOT NULL")


def _lanes() -> None:
    op.drop_table("lanes")
    op.create_table(
        "lanes",
        sa.Column("endpoint", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("worker_id", Id(), nullable=False),
        sa.PrimaryKeyConstraint("endpoint", name=op.f("lanes_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("lanes_by_worker_id"), "lanes", ["worker_id"], unique=False)


def _reports() -> None:
    op.create_table(
        "reports",
        sa.Column("account", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("report_id", sa.Text(), nullable=False),
        sa.Column("event_id", Id(), nullable=True),
        sa.Column("reason", sa.SmallInteger(), nullable=True),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("account", "report_id", name=op.f("reports_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("reports_by_created_at"),
        "reports",
        ["created_at"],
        unique=False,
        postgresql_using="brin",
    )


def _delivery_columns() -> list[sa.Column[object]]:
    return [
        sa.Column("account", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("endpoint", sa.Integer(), nullable=False),
        sa.Column("event_id", Id(), nullable=False),
        sa.Column("event_type", sa.SmallInteger(), nullable=False),
        sa.Column("project_id", Id(), nullable=True),
        sa.Column("trigger", sa.SmallInteger(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("budget", sa.Integer(), nullable=False),
        sa.Column("delivered_at", Instant(), nullable=True),
    ]


def _attempt_columns(*, nullable: bool) -> list[sa.Column[object]]:
    return [
        sa.Column("number", sa.Integer(), nullable=nullable),
        sa.Column("started_at", Instant(), nullable=nullable),
        sa.Column("duration_ms", sa.Double(), nullable=nullable),
        sa.Column("dns_ms", sa.Double(), nullable=True),
        sa.Column("connect_ms", sa.Double(), nullable=True),
        sa.Column("tls_ms", sa.Double(), nullable=True),
        sa.Column("first_byte_ms", sa.Double(), nullable=True),
        sa.Column("signed_with", sa.Text(), nullable=nullable),
        sa.Column("request_headers", sa.LargeBinary(), nullable=nullable),
        sa.Column("response_status", sa.Integer(), nullable=True),
        sa.Column("response_headers", sa.LargeBinary(), nullable=nullable),
        sa.Column("response_body", sa.LargeBinary(), nullable=nullable),
        sa.Column("response_truncated", sa.Boolean(), nullable=nullable),
        sa.Column("outcome", sa.SmallInteger(), nullable=nullable),
        sa.Column("tls_fault", sa.SmallInteger(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
    ]


def _partial_index(name: str, table: str, columns: list[str], where: str) -> None:
    condition = sa.text(where)
    op.create_index(
        name,
        table,
        columns,
        unique=False,
        sqlite_where=condition,
        postgresql_where=condition,
    )
