"""Members of an account have roles, and are invited.

The users of before become owners, by the default of the new column, which is also what a version
that knows no roles writes. Such a version lets every user do everything: none was released whose
newest revision is 0012 or later, so none can run beside this one.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None
oldest_code = "0012"

ROLES = "role IN ('owner', 'developer', 'viewer')"


def upgrade() -> None:
    op.add_column("users", sa.Column("role", sa.Text(), server_default="owner", nullable=False))
    op.create_table(
        "invitations",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("email", sa.Text()),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.CheckConstraint(ROLES, name=op.f("invitations_role")),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("invitations_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("invitations_by_digest"), "invitations", ["digest"])
    op.create_index(op.f("invitations_by_expires_at"), "invitations", ["expires_at"])
