"""Whether the holder of a lane takes what is booked for it, and which workers are leaving."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table, column in (("lanes", "accepts"), ("workers", "leaving")):
        op.add_column(
            table, sa.Column(column, sa.Boolean(), nullable=False, server_default=sa.false())
        )
