"""Listeners and their streams."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _listener_events()
    _listeners()


def _listener_events() -> None:
    op.create_table(
        "listener_events",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("listener_id", Id(), nullable=False),
        sa.Column("event_id", Id(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint(
            "account_id", "listener_id", "event_id", name=op.f("listener_events_pkey")
        ),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("listener_events_by_account_id_listener_id_position"),
        "listener_events",
        ["account_id", "listener_id", "position"],
        unique=False,
    )


def _listeners() -> None:
    op.create_table(
        "listeners",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("served_at", Instant(), nullable=False),
        sa.Column("settled", Id(), nullable=False),
        sa.Column("mark_at", Instant(), nullable=False),
        sa.Column("mark_number", sa.BigInteger(), nullable=False),
        sa.Column("acknowledged", sa.BigInteger(), nullable=False),
        sa.Column("last_position", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("acknowledged <= last_position", name=op.f("listeners_acknowledged")),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("listeners_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("listeners_by_account_id_name"), "listeners", ["account_id", "name"], unique=True
    )
    op.create_index(op.f("listeners_by_served_at"), "listeners", ["served_at"], unique=False)
