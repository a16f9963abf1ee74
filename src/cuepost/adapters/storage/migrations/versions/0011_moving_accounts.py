"""Accounts that move to another database, and look-ups of tokens that need not be unique.

Statements of the version before work on it: the indexes have the same names and columns, and the
new column has a default.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

STATES = "('live', 'leaving', 'arriving', 'moved')"


def upgrade() -> None:
    op.execute(
        "ALTER TABLE accounts ADD COLUMN state TEXT DEFAULT 'live' NOT NULL "
        f"CONSTRAINT accounts_state CHECK (state IN {STATES})"
    )
    op.create_table(
        "account_moves",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("token", sa.Text()),
        sa.Column("run_id", Id()),
        sa.Column("created_at", Instant(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", name=op.f("account_moves_pkey")),
        sqlite_with_rowid=False,
    )
    # Tokens are made of chance, so no two are the same; a database that is shared out by account
    # could not see to it.
    for table, column in (
        ("sessions", "digest"),
        ("sign_in_links", "digest"),
        ("inboxes", "token"),
    ):
        name = op.f(f"{table}_by_{column}")
        op.drop_index(name, table)
        op.create_index(name, table, [column])
