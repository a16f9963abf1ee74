"""Projects can be found by the beginning of their name.

Code of the version before goes on: the column is nullable, and it does not name it. A project that
it makes gets its search name from a maintenance job; one that it renames is found by the name of
before until it is changed again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None
oldest_code = "0024"


def upgrade() -> None:
    text = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.add_column("projects", sa.Column("search_name", text))
