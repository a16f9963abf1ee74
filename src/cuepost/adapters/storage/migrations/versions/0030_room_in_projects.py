"""Room in the pages of projects, so that a milestone changes no index of its project.

On SQLite there is nothing to change: an index is written only if its columns change.
"""

from alembic import op

revision = "0030"
down_revision = "0029"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        # Applies to pages that are written from now on.
        op.execute("ALTER TABLE projects SET (fillfactor = 70)")
