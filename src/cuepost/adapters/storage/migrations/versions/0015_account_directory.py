"""Accounts can be found by an external id and by name, and be erased in the background.

Code of the version before goes on: the columns are nullable, and it does not name them. An account
that it makes gets its search name from a maintenance job.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Instant

revision = "0015"
down_revision = "0013"
branch_labels = None
depends_on = None
oldest_code = "0013"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("accounts", sa.Column("external_id", text))
    op.add_column("accounts", sa.Column("search_name", text))
    op.add_column("accounts", sa.Column("erasing_since", Instant()))
