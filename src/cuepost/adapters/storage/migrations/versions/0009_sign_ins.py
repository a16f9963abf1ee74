"""Counted attempts to sign in, and which sessions a one-time link has opened."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Instant

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "sign_in_attempts",
        sa.Column("key", sa.LargeBinary(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("ends_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("sign_in_attempts_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("sign_in_attempts_by_ends_at"), "sign_in_attempts", ["ends_at"])
    op.add_column(
        "sessions",
        sa.Column("by_link", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
