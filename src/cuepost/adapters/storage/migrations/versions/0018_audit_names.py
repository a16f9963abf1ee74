"""An audit entry keeps what its actor was called, so that it can be read once the actor has left.

Entries of before, and those that a version writes that does not know the column, have no name.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None
oldest_code = "0012"


def upgrade() -> None:
    op.add_column("audit_entries", sa.Column("actor_name", sa.Text(), nullable=True))
