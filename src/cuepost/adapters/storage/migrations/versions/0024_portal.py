"""Members can have an external id, and a host product can sign them in by portal links.

Code of the version before goes on: the column is nullable, the table is new, and it names neither.
"""

import sqlalchemy as sa
from alembic import op

from cuepost.adapters.storage.types import Id, Instant

revision = "0024"
down_revision = "0023"
branch_labels = None
depends_on = None
oldest_code = "0019"


def upgrade() -> None:
    op.add_column("users", sa.Column("external_id", sa.Text()))
    op.create_table(
        "portal_links",
        sa.Column("account_id", Id(), nullable=False),
        sa.Column("id", Id(), nullable=False),
        sa.Column("user_id", Id(), nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", Instant(), nullable=False),
        sa.Column("expires_at", Instant(), nullable=False),
        sa.Column("ends_at", Instant(), nullable=False),
        sa.Column("used_at", Instant()),
        sa.Column("return_url", sa.Text()),
        sa.Column("accent", sa.Text()),
        sa.Column("logo_url", sa.Text()),
        sa.Column("colour_scheme", sa.Text(), nullable=False),
        sa.CheckConstraint(
            "colour_scheme IN ('system', 'light', 'dark')",
            name=op.f("portal_links_colour_scheme"),
        ),
        sa.PrimaryKeyConstraint("account_id", "id", name=op.f("portal_links_pkey")),
        sqlite_with_rowid=False,
    )
    op.create_index(op.f("portal_links_by_digest"), "portal_links", ["digest"])
    op.create_index(op.f("portal_links_by_ends_at"), "portal_links", ["ends_at"])
