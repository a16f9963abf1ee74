"""Invitations that wait to be sent by e-mail, with the token of their link sealed.

Code of the version before does not know the table. If it uses up or revokes an invitation, the row
that is left is dropped unsent.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0023"
down_revision = "0019"
branch_labels = None
depends_on = None
oldest_code = "0019"


def upgrade() -> None:
    op.create_table(
        "invitation_mails",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("due_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("attempts_made", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("invitation_mails_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("invitation_mails_by_due_at"), "invitation_mails", ["due_at"])
    op.create_index(op.f("invitation_mails_by_expires_at"), "invitation_mails", ["expires_at"])
