"""No two members of an account have the same external id."""

from cuepost.adapters.storage.migrations.concurrent_index import create_index_concurrently

revision = "0025"
down_revision = "0024"
branch_labels = None
depends_on = None
# Older code writes no external ids, so that the unique index refuses nothing of it; but only code
# from 0024 on was tried beside it.
oldest_code = "0024"


def upgrade() -> None:
    create_index_concurrently(
        "users_by_account_id_external_id", "users", ["account_id", "external_id"], is_unique=True
    )
