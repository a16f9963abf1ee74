"""Which versions can run on the schema, stated where those that do not know it can read it."""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.schema import VERSION

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None
# Versions from before do not read it.
oldest_code = revision


def upgrade() -> None:
    op.add_column(VERSION, sa.Column("oldest_code", sa.String(32), nullable=True))
