"""The indexes that accounts are found by; no two accounts have the same external id."""

from cuepost.adapters.storage.migrations.concurrent_index import create_index_concurrently

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None
# Older code writes no external ids, so that the unique index refuses nothing of it; but only code
# from 0015 on was tried beside it.
oldest_code = "0015"


def upgrade() -> None:
    create_index_concurrently(
        "accounts_by_external_id", "accounts", ["external_id"], is_unique=True
    )
    create_index_concurrently("accounts_by_search_name_id", "accounts", ["search_name", "id"])
    create_index_concurrently(
        "accounts_by_erasing_since",
        "accounts",
        ["erasing_since"],
        where="erasing_since IS NOT NULL",
    )
