"""Who a user is at an OpenID provider.

Users of before, and those that a version creates that does not know the columns, are none there.
"""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    op.add_column("users", sa.Column("oidc_issuer", sa.Text(), nullable=True))
    op.add_column("users", sa.Column("oidc_subject", sa.Text(), nullable=True))
