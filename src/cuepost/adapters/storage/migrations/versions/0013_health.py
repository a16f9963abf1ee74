"""Counts of deliveries per endpoint and interval, and what an endpoint remembers of its attempts.

Processes of the version before would not count what they record, so they cannot run beside this
one. What there is in the history is counted afterwards (`old_counts.py`).
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.migrations import old_counts
from cuepost.adapters.storage.types import Instant

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None
oldest_code = revision


def upgrade() -> None:
    _counts()
    _condition()
    old_counts.mark(op.get_bind())


def _condition() -> None:
    """Endpoints that were failing are in trouble since then; the next failure says more."""
    for name in ("troubled_since", "last_failed_at"):
        op.add_column("endpoints", sa.Column(name, Instant(), nullable=True))
    op.execute(
        "UPDATE endpoints SET troubled_since = failing_since, last_failed_at = failing_since, "
        "failing_since = NULL WHERE failing_since IS NOT NULL"
    )


def _counts() -> None:
    op.create_table(
        "delivery_counts",
        sa.Column("account", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("endpoint", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("minutes", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("since", Instant(), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in old_counts.COUNTED),
        sa.PrimaryKeyConstraint(
            "account", "endpoint", "minutes", "since", name=op.f("delivery_counts_pkey")
        ),
        postgresql_with={"fillfactor": 50},
        sqlite_with_rowid=False,
    )
    op.create_index(
        op.f("delivery_counts_by_minutes_since"), "delivery_counts", ["minutes", "since"]
    )
