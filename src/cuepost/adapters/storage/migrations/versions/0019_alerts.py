"""Alerts of endpoints, e-mails about them, and people who do not want them.

Processes of the version before could not read events of the two operational types.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None
oldest_code = revision


def upgrade() -> None:
    op.add_column(
        "users",
        sa.Column("wants_alerts", sa.Boolean(), server_default=sa.true(), nullable=False),
    )
    op.create_table(
        "alerts",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", Instant(), nullable=False),
        sa.Column("finished_at", Instant()),
        sa.Column("changes", sa.Integer(), nullable=False),
        sa.Column("announced", sa.Integer(), nullable=False),
        sa.CheckConstraint("kind IN ('failing', 'backlog')", name=op.f("alerts_kind")),
        sa.PrimaryKeyConstraint(
            "account_id", "webhook_id", "kind", "since", name=op.f("alerts_pkey")
        ),
        sqlite_with_rowid=False,
    )
    _index("alerts_open", ["account_id", "webhook_id", "kind"], "finished_at IS NULL", unique=True)
    _index("alerts_unannounced", ["since"], "announced < changes")
    op.create_table(
        "alert_mails",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("webhook_id", Id(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("since", Instant(), nullable=False),
        sa.Column("number", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("user_id", Id(), nullable=False),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            *("account_id", "webhook_id", "kind", "since", "number", "user_id"),
            name=op.f("alert_mails_pkey"),
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("alert_mails_by_due_at"), "alert_mails", ["due_at"])


def _index(name: str, columns: list[str], where: str, *, unique: bool = False) -> None:
    condition = sa.text(where)
    op.create_index(
        name,
        "alerts",
        columns,
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )
